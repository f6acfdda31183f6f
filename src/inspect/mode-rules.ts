import type { Packet } from '../backends/inspection.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { Frontend } from '../plan/frontend.ts';
import { choiceByPlan, choiceByVirtualServer } from './choice.ts';
import type { Matches } from './frontends.ts';
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
  nodePort: atKernelAddresses,
  unmatched: refusedByChain,
  testsSource: isGuarded,
  choose: choiceByPlan,
  masquerade: masqueradeByRules,
  sparesOwnEndpoints: true,
  isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
};

/** Rules in order: what comes first wins, and each is attached to some hooks only. */
const iptables: ModeRules = {
  nodePort: atInterfaceAddresses,
  unmatched: passesUnseen,
  // An external IP rule stands before that of the load balancer; without endpoints there is neither.
  testsSource: (frontend) =>
    frontend.kind === 'load balancer IP' && frontend.plan.hasAnyEndpoints && isGuarded(frontend),
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
  nodePort: atVirtualServers,
  unmatched: refusedByDevice,
  // What the node sends is filtered only where it uses the balancer's address as its source.
  testsSource: (frontend, { source, destination, origin }) =>
    isGuarded(frontend) && (origin !== 'node' || source === destination),
  choose: choiceByVirtualServer,
  masquerade: masqueradeBySets,
  sparesOwnEndpoints: true,
  isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
};

const userspace: ModeRules = {
  nodePort: atProxiedAddresses,
  unmatched: refusedByChain,
  testsSource: isGuarded,
  choose: choiceByPlan,
  masquerade: masqueradeByProxy,
  sparesOwnEndpoints: false,
  isHairpin: () => false,
};

export const modeRules: Readonly<Record<ProxyMode, ModeRules>> = { nftables, iptables, ipvs, userspace };
