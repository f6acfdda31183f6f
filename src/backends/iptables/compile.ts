import { servicePortName } from '../../model/service-port.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { type DispatchRules, dispatchRules } from './dispatch-rules.ts';
import { serviceNames } from './names.ts';
import { countServiceRules, serviceChains, serviceRules } from './service-rules.ts';
import type { IptablesSettings } from './settings.ts';

/** What the text of a service port's rules depends on besides its plan and the settings. */
export interface Variant {
  /** Rules that there are one or more of for every endpoint have comments; in large clusters they have not. */
  readonly comments: boolean;
  /** The nfacct counter of node port traffic on loopback exists. */
  readonly countLocalhost: boolean;
}

/**
 * A service port with its lines in shared chains. Those in its own chains follow from the plan and are made when they
 * are written: to keep them all would take hundreds of megabytes in a large cluster.
 */
export interface CompiledService {
  readonly key: string;
  readonly name: string;
  readonly plan: ServicePlan;
  readonly variant: Variant;
  readonly dispatch: DispatchRules;
  /** How many rules its own chains hold. */
  readonly ownRules: number;
}

/** The chains that only one service port uses, and the rules in them. */
export interface OwnChains {
  readonly declared: readonly string[];
  /** How many rules there are. */
  readonly count: number;
  rules(): readonly string[];
}

/** Characters that mean nothing to iptables-restore, in quotes or without; those of all names Kubernetes allows. */
const plainName = /^[\w./:-]+$/;

/** Throws when the name of the service port cannot be written into a rule. */
export function compileService(
  plan: ServicePlan,
  settings: IptablesSettings,
  variant: Variant,
): CompiledService {
  const { port } = plan;
  const name = servicePortName(port);
  if (!plainName.test(name))
    throw new Error(`service port name ${JSON.stringify(name)} cannot be part of a rule`);
  const names = serviceNames(port);
  const dispatch = dispatchRules(plan, names, settings, variant.countLocalhost);
  return { key: port.key, name, plan, variant, dispatch, ownRules: countServiceRules(plan, names, settings) };
}

export function ownChains(service: CompiledService, settings: IptablesSettings): OwnChains {
  const { plan, variant, ownRules } = service;
  const chains = serviceChains(plan);
  return {
    declared: chains.declared,
    count: ownRules,
    rules: () => serviceRules(plan, chains, settings, variant.comments),
  };
}

/** By name, then protocol. */
export function compareServices(a: CompiledService, b: CompiledService): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
