import type { Story } from '../story.ts';
import { addressStories } from './addresses.ts';
import { affinityStories } from './affinity.ts';
import { changeStories } from './changes.ts';
import { clusterIPStories } from './cluster-ip.ts';
import { dualStackStories } from './dual-stack.ts';
import { flowStories } from './flows.ts';
import { loadBalancerStories } from './load-balancer.ts';
import { localTrafficStories } from './local-traffic.ts';
import { loopbackStories } from './loopback.ts';
import { nodePortStories } from './node-port.ts';
import { ownershipStories } from './ownership.ts';
import { policyTableStories } from './policy-table.ts';
import { sctpStories } from './sctp.ts';
import { sourceRangeStories } from './source-ranges.ts';
import { topologyStories } from './topology.ts';

/** All stories of the contract. */
export const stories: readonly Story[] = [
  ...clusterIPStories,
  ...nodePortStories,
  ...loadBalancerStories,
  ...sourceRangeStories,
  ...affinityStories,
  ...flowStories,
  ...loopbackStories,
  ...topologyStories,
  ...localTrafficStories,
  ...addressStories,
  ...changeStories,
  ...dualStackStories,
  ...ownershipStories,
  ...sctpStories,
  ...policyTableStories,
];
