import type { CIDR, Family } from '../../model/ip.ts';
import { parseCIDR } from '../../model/ip.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import type { NodePortAddresses } from '../../model/node-port-addresses.ts';
import { type BackendContext, defaultMasqueradeBit } from '../mode.ts';

/** What the state of one family depends on besides services and node addresses. Fixed while the program runs. */
export interface IpvsSettings {
  readonly family: Family;
  /** Of every virtual server, as the kernel knows it; never empty. */
  readonly scheduler: string;
  /** Of this family. Virtual servers in here are never deleted. */
  readonly excludeCIDRs: readonly CIDR[];
  /** 0 to 31. */
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  readonly localDetector: LocalDetector;
  readonly nodePortAddresses: NodePortAddresses;
  /** This node's address in this family; empty when unknown. */
  readonly nodeIP: string;
}

const defaultScheduler = 'rr';

/** The settings of one family, from the configuration and what is known of the node. */
export function settingsOf(
  context: Pick<BackendContext, 'family' | 'config' | 'nodeIP' | 'nodePortAddresses' | 'localDetector'>,
): IpvsSettings {
  const { family, config, nodeIP, nodePortAddresses, localDetector } = context;
  const excluded = (config.ipvs.excludeCIDRs ?? []).flatMap((text) => parseCIDR(text) ?? []);
  return {
    family,
    scheduler: config.ipvs.scheduler || defaultScheduler,
    excludeCIDRs: excluded.filter((cidr) => cidr.family === family),
    masqueradeBit: config.iptables.masqueradeBit ?? defaultMasqueradeBit,
    masqueradeAll: config.linux.masqueradeAll,
    localDetector,
    nodePortAddresses,
    nodeIP,
  };
}
