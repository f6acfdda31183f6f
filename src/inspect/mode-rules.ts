import type { Packet } from '../backends/inspection.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import { choiceByPlan, choiceByVirtualServer } from './choice.ts';
import type { Frontend, Matches } from './frontends.ts';
import { masqueradeByProxy, masqueradeByRules, masqueradeBySets } from './masquerade.ts';
import type { NodeFacts, Sending } from './node-facts.ts';
import {
  atInterfaceAddresses,
  atKernelAddresses,
  atProxiedAddresses,
  atVirtualServers,
  type NodePortTest,
} from './node-port-rules.ts';
import type { Choice, Masquerade, Outcome } from './outcome.ts';
import { isGuarded } from './source-ranges.ts';
import { passesUnseen, refusedByChain, refusedByDevice } from './unmatched.ts';

/** Where modes differ in what becomes of a packet. */
export interface ModeRules {
  /** An address that several service ports claim goes to a cluster IP first, or only by name. */
  readonly clusterIPsFirst: boolean;
  /** What becomes of a packet to a node port at this address of the node; undefined: it is served. */
  readonly nodePort: NodePortTest;
  /** What becomes of a packet that no frontend is there for; undefined: nothing. */
  unmatched(packet: Packet, matches: Matches, node: NodeFacts): Outcome | undefined;
  /** Whether source ranges are put to the test. */
  testsSource(frontend: Frontend, packet: Packet): boolean;
  choose(frontend: Frontend, sending: Sending): Choice | Outcome;
  /** Why a refusal does not take effect; undefined where it does. */
  missesRefusal?(frontend: Frontend, packet: Packet, node: NodeFacts): string | undefined;
  masquerade(frontend: Frontend, packet: Packet, node: NodeFacts, sending: Sending): Masquerade;
  /** Packets from elsewhere to an endpoint at the node's own address are not masqueraded: they do not leave again. */
  readonly sparesOwnEndpoints: boolean;
  /** The endpoint would see its own address as the source, and does not since that is masqueraded. */
  isHairpin(endpoint: Endpoint, packet: Packet): boolean;
}

const nftables: ModeRules = {
  clusterIPsFirst: true,
  nodePort: atKernelAddresses,
  unmatched: refusedByChain,
  testsSource: ({ plan }, { destination }) => isGuarded(plan, destination),
  choose: choiceByPlan,
  masquerade: masqueradeByRules,
  sparesOwnEndpoints: true,
  isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
};

/** Rules in order: what comes first wins, and each is attached to some hooks only. */
const iptables: ModeRules = {
  clusterIPsFirst: false,
  nodePort: atInterfaceAddresses,
  unmatched: passesUnseen,
  // An external IP rule stands before that of the load balancer; without endpoints there is neither.
  testsSource: ({ kind, plan }, { destination }) =>
    kind === 'load balancer IP' && plan.hasAnyEndpoints && isGuarded(plan, destination),
  choose: choiceByPlan,
  missesRefusal({ kind }, { destination, origin }, { ownAddresses }) {
    const isOwn = ownAddresses.includes(destination);
    if (kind === 'cluster IP' && isOwn && origin !== 'node') {
      return 'In iptables mode that is not in effect for cluster IPs that are also addresses of the node.';
    }
    if (kind !== 'cluster IP' && !isOwn && kind !== 'node port' && origin === 'node') {
      return 'In iptables mode that is not in effect for what the node itself sends to addresses elsewhere.';
    }
    return undefined;
  },
  masquerade: masqueradeByRules,
  sparesOwnEndpoints: true,
  isHairpin: ({ ip }, { source }) => ip === source,
};

const ipvs: ModeRules = {
  clusterIPsFirst: true,
  nodePort: atVirtualServers,
  unmatched: refusedByDevice,
  // What the node sends is filtered only where it uses the balancer's address as its source.
  testsSource: ({ plan }, { source, destination, origin }) =>
    isGuarded(plan, destination) && (origin !== 'node' || source === destination),
  choose: choiceByVirtualServer,
  masquerade: masqueradeBySets,
  sparesOwnEndpoints: true,
  isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
};

const userspace: ModeRules = {
  // As at a start; later whoever has a frontend keeps it.
  clusterIPsFirst: false,
  nodePort: atProxiedAddresses,
  unmatched: refusedByChain,
  testsSource: ({ plan }, { destination }) => isGuarded(plan, destination),
  choose: choiceByPlan,
  masquerade: masqueradeByProxy,
  sparesOwnEndpoints: false,
  isHairpin: () => false,
};

export const modeRules: Readonly<Record<ProxyMode, ModeRules>> = { nftables, iptables, ipvs, userspace };
