import type { Inspection } from '../src/backends/inspection.ts';
import { packetRules } from '../src/backends/nftables/packet-rules.ts';
import type { NodeFacts } from '../src/backends/node-facts.ts';
import type { PacketRules } from '../src/backends/packet-rules.ts';
import type { SyncActivity } from '../src/inspect/family-view.ts';
import { type InspectedFamily, Inspector, type InspectorOptions } from '../src/inspect/inspector.ts';
import { Journal } from '../src/inspect/journal.ts';
import { KernelView } from '../src/inspect/kernel-view.ts';
import type { Clock } from '../src/lib/clock.ts';
import { nodePortAddresses } from '../src/model/node-port-addresses.ts';
import type { Placement } from '../src/model/placement.ts';
import type { PlannedPort } from '../src/plan/plan.ts';

/** Facts of a node whose kernel serves node ports at all addresses. */
export const node: NodeFacts = {
  family: 'IPv4',
  nodeIP: '192.0.2.5',
  ownAddresses: ['127.0.0.1', '192.0.2.5'],
  nodePortAddresses: nodePortAddresses('IPv4', []),
  localDetector: { kind: 'none' },
  masqueradeAll: false,
  serviceCIDRs: [],
};

export type MutableActivity = { -readonly [Key in keyof SyncActivity]: SyncActivity[Key] };

export function idle(): MutableActivity {
  return {
    isSyncing: false,
    syncs: 1,
    lastSync: undefined,
    failures: 0,
    lastFailure: undefined,
    repairs: 0,
    lastRepair: undefined,
  };
}

/** A kernel that ignores every packet and agrees with every plan, apart from `answers`. */
export function inspection(answers: Partial<Inspection> = {}): Inspection {
  return {
    ask: async () => ({ fate: { action: 'pass' }, evidence: [], lookedAt: 'nothing' }),
    compare: async () => [],
    bindings: async () => {},
    close: async () => {},
    ...answers,
  };
}

export interface TestFamily {
  readonly plans?: ReadonlyMap<string, PlannedPort>;
  /** By endpoint. */
  readonly placements?: ReadonlyMap<string, Placement>;
  readonly activity?: SyncActivity;
  readonly isInitialised?: boolean;
  readonly kernel?: Inspection | string;
  /** In place of those of nftables mode. */
  readonly rules?: Partial<PacketRules>;
}

export function inspectedFamily(
  {
    plans = new Map(),
    placements = new Map(),
    activity = idle(),
    isInitialised = true,
    kernel = inspection(),
    rules = {},
  }: TestFamily,
  clock: Clock,
): InspectedFamily {
  return {
    view: {
      family: 'IPv4',
      isInitialised,
      plans,
      placements: () => ({ byEndpoint: placements, slices: [] }),
      serviceCIDRs: ['10.96.0.0/16'],
      totalEndpoints: 3,
      pending: { services: 0, slices: 0 },
      activity,
    },
    nodeIP: node.nodeIP,
    facts: () => node,
    rules: { ...packetRules(false), ...rules },
    kernel: typeof kernel === 'string' ? kernel : new KernelView({ open: async () => kernel, clock }),
    interfaceTowards: async () => 'eth0',
  };
}

/** A proxy that serves IPv4 on node n1. */
export function testInspector(
  family: TestFamily,
  clock: Clock,
  options: Partial<InspectorOptions> = {},
): Inspector {
  return new Inspector({
    version: 'v1.37.0',
    mode: 'nftables',
    nodeName: 'n1',
    startTime: clock.now(),
    families: [inspectedFamily(family, clock)],
    problems: () => [],
    sources: () => ({ kind: 'APIServer', location: 'https://192.0.2.1:6443', watches: [], errors: [] }),
    configFile: () => undefined,
    setAside: () => [],
    journal: new Journal(clock),
    clock,
    ...options,
  });
}
