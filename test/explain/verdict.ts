import type { Fate, Target } from '../../src/backends/inspection.ts';
import { joinHostPort } from '../../src/model/ip.ts';
import type { Outcome } from '../cluster/lab/traffic.ts';
import { addressBooks, type HostName } from '../contract/address-book.ts';
import { hostPort, podPort } from '../contract/objects.ts';
import type { TestPacket } from './packets.ts';

const endpointHosts: readonly HostName[] = ['A', 'B', 'C', 'D'];

/** Returns how a packet's fate contradicts the explanation; undefined when they agree. */
export function contradiction(packet: TestPacket, fate: Fate, outcome: Outcome): string | undefined {
  switch (fate.action) {
    case 'drop':
      return outcome.kind === 'silence' ? undefined : 'predicted to be dropped';
    case 'reject':
      return outcome.kind === 'rejected' ? undefined : 'predicted to be rejected';
    case 'forward':
      return notForwarded(packet, fate, outcome);
    case 'pass':
      return notLeftAlone(packet, outcome);
  }
}

function notForwarded(
  packet: TestPacket,
  { targets }: Extract<Fate, { action: 'forward' }>,
  outcome: Outcome,
): string | undefined {
  if (outcome.kind === 'silence' && targets.some((target) => isFromItself(packet, target))) return undefined;
  if (outcome.kind !== 'answered') return 'predicted to be forwarded';
  const { node } = addressBooks[packet.family];
  const target = targets.find(({ endpoint }) => endpoint === endpointOf(outcome.by, packet));
  if (!target || target.probability <= 0) return `${outcome.by} was not among the targets`;
  const isSource = outcome.source === (target.masquerade ? node : packet.source);
  return isSource ? undefined : `predicted ${target.masquerade ? '' : 'not '}to be masqueraded`;
}

/** A pod elsewhere that reaches itself gets a packet from its own address, and drops it. */
function isFromItself({ source }: TestPacket, { endpoint, masquerade }: Target): boolean {
  return !masquerade && endpoint === joinHostPort(source, podPort);
}

/** Checks that a packet goes where it would go without a proxy: to a pod, to the node's own sockets, or to the world. */
function notLeftAlone(packet: TestPacket, outcome: Outcome): string | undefined {
  const { family, destination, port, transport } = packet;
  const { hosts, node, nodeSecond, loopback, unallocated } = addressBooks[family];
  const isAnsweredBy = (name: string): boolean =>
    outcome.kind === 'answered' && outcome.by === name && outcome.source === packet.source;
  if (destination === hosts.D && port === podPort) {
    return isAnsweredBy('D') ? undefined : 'predicted to be left alone, on its way to a pod';
  }
  if ([node, nodeSecond, loopback].includes(destination)) {
    const refusal = transport === 'tcp' ? 'reset' : 'rejected';
    return outcome.kind === refusal
      ? undefined
      : 'predicted to be left alone, at a port where nothing listens';
  }
  // There, datagrams are answered at one address only.
  if (transport === 'udp' && destination !== unallocated) {
    return outcome.kind === 'answered' ? 'predicted to be left alone, where nothing answers' : undefined;
  }
  return isAnsweredBy('world') ? undefined : 'predicted to be left alone, on its way to the world';
}

function endpointOf(name: string, { family }: TestPacket): string {
  const { hosts, node } = addressBooks[family];
  if (name === 'node') return joinHostPort(node, hostPort);
  const host = endpointHosts.find((one) => one === name);
  return host ? joinHostPort(hosts[host], podPort) : name;
}
