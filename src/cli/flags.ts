import type { ProxyFlag } from './flags/flag.ts';
import { loggingFlags } from './flags/logging.ts';
import { nodeFlags } from './flags/node.ts';
import { programFlags, sourceFlags } from './flags/program.ts';
import { retiredFlags } from './flags/retired.ts';
import { servingFlags } from './flags/serving.ts';
import { iptablesFlags, ipvsFlags, trafficFlags } from './flags/traffic.ts';

/** Flags under one heading of the help text. */
export interface FlagGroup {
  readonly title: string;
  readonly flags: readonly ProxyFlag[];
}

/** Every flag that has an effect, in the order of the help text. */
export const flagGroups: readonly FlagGroup[] = [
  { title: 'Program', flags: programFlags },
  { title: 'Cluster', flags: sourceFlags },
  { title: 'Traffic', flags: trafficFlags },
  { title: 'iptables and nftables modes', flags: iptablesFlags },
  { title: 'ipvs mode', flags: ipvsFlags },
  { title: 'Health and metrics', flags: servingFlags },
  { title: 'Connection tracking and process', flags: nodeFlags },
  { title: 'Logging', flags: loggingFlags },
];

/** The flags of the groups, and those of earlier releases, which are accepted and ignored. */
export const allFlags: readonly ProxyFlag[] = [
  ...flagGroups.flatMap((group) => group.flags),
  ...retiredFlags,
];

/** Flags of earlier releases: /flagz and the log leave them out. */
export const retiredNames: ReadonlySet<string> = new Set(retiredFlags.map((flag) => flag.name));
