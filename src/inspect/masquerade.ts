import type { Packet } from '../backends/inspection.ts';
import type { Frontend } from '../plan/frontend.ts';
import { isLoopbackAddress, type NodeFacts, type Sending, senderOf } from './node-facts.ts';
import type { Masquerade } from './outcome.ts';

/** How rules of nftables and iptables mode have it. */
export function masqueradeByRules(
  { masqueraded }: Frontend,
  _packet: Packet,
  node: NodeFacts,
  sending: Sending,
): Masquerade {
  if (masqueraded === 'all but pods') {
    return (
      masqueradeToClusterIP(node, sending) ??
      no('Not masqueraded: nothing is configured by which pods could be told from others.')
    );
  }
  if (masqueraded === 'all') return external;
  switch (senderOf(sending)) {
    case 'pod':
      return no('Not masqueraded: the sender is a pod.');
    case 'node':
      return yes('Masqueraded: the node itself sends it to an address that is external.');
    case 'other':
      return no('Not masqueraded: externalTrafficPolicy Local keeps the source address of clients.');
  }
}

/** How the ipsets of ipvs mode have it. */
export function masqueradeBySets(
  { masqueraded }: Frontend,
  { source, destination }: Packet,
  node: NodeFacts,
  sending: Sending,
): Masquerade {
  if (isLoopbackAddress(source)) return no('Not masqueraded: the source is a loopback address.');
  if (masqueraded === 'all but pods') {
    const byDetector = masqueradeToClusterIP(node, sending);
    if (byDetector) return byDetector;
    return source === destination
      ? yes('Masqueraded: the node uses the service address itself as its source.')
      : no('Not masqueraded: nothing is configured by which pods could be told from others.');
  }
  if (masqueraded === 'all') return external;
  return no('Not masqueraded: externalTrafficPolicy Local keeps the source address.');
}

/** How a proxy process has it that makes connections of its own. */
export function masqueradeByProxy(): Masquerade {
  return yes(
    'The endpoint sees an address of this node: in userspace mode this process makes the connection to it.',
  );
}

const external: Masquerade = yes(
  'Masqueraded: externalTrafficPolicy is Cluster, and replies have to come back through this node.',
);

/** Undefined where nothing tells pods from others. */
function masqueradeToClusterIP(
  { masqueradeAll }: NodeFacts,
  { isPod, reason }: Sending,
): Masquerade | undefined {
  if (masqueradeAll) return yes('Masqueraded: masqueradeAll is set.');
  if (isPod === undefined) return undefined;
  return isPod
    ? no(`Not masqueraded: the sender is a pod (${reason}).`)
    : yes(`Masqueraded: the sender is not a pod (${reason}).`);
}

function yes(reason: string): Masquerade {
  return { masquerade: true, reason };
}

function no(reason: string): Masquerade {
  return { masquerade: false, reason };
}
