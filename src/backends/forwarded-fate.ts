import { isHash } from '../forwarder/balancer.ts';
import { isSourceKept } from '../forwarder/client-source.ts';
import type { ListenerState, Outlook } from '../forwarder/forwarder.ts';
import { canonicalIP, formatIP, joinHostPort, splitIPPort } from '../model/ip.ts';
import { sharesOf } from '../plan/shares.ts';
import { boundTo, type Fate, type FollowedPacket, type Packet } from './inspection.ts';

/**
 * The fate of a connection to a listener. A client with affinity has one target, and so has one whose address is
 * hashed. Others may get any endpoint: endpoints take turns, also with equal connection counts. The evidence says which
 * one is next.
 */
export function forwardedAnswer(
  { listener, turns, bound }: Outlook,
  packet: Pick<Packet, 'source' | 'destination'>,
): FollowedPacket {
  const { source: client } = packet;
  const fate = fateOf(listener, packet, bound?.endpoint);
  const evidence = [
    `listener ${listenerName(listener)} of ${listener.service}: ${distributionOf(listener)}${keptOf(listener)}`,
    ...turns
      .filter(({ endpoint }) => !isHash(listener.choice) || isPossible(fate, endpoint))
      .map(({ endpoint, open }, i) => `${turnOf(listener, i)} ${endpoint}, ${open} open`),
    ...(bound === undefined ? [] : [`${client} is bound to ${bound.endpoint}`]),
  ];
  return { fate, evidence, ...boundTo(fate, bound?.secondsLeft) };
}

/** `, keeps the address of 10.244.0.0/16 at 10.96.0.1`. */
function keptOf({ kept }: ListenerState): string {
  if (kept === undefined) return '';
  return `, keeps the address of ${kept.of}${kept.at === undefined ? '' : ` at ${kept.at}`}`;
}

function isPossible(fate: Fate, endpoint: string): boolean {
  return fate.action === 'forward' && fate.targets.some((target) => target.endpoint === endpoint);
}

function turnOf({ choice }: ListenerState, nth: number): string {
  if (choice === 'hash-client') return 'by hash';
  if (choice === 'random' || choice === 'hash') return 'perhaps';
  return nth === 0 ? 'next' : 'then';
}

/** `192.0.2.5:40000/TCP`. */
export function listenerName({ at, protocol }: Pick<ListenerState, 'at' | 'protocol'>): string {
  return `${joinHostPort(at.ip, at.port)}/${protocol}`;
}

/** `round-robin, affinity 10800 s`. */
export function distributionOf({
  choice,
  affinitySeconds,
}: Pick<ListenerState, 'choice' | 'affinitySeconds'>): string {
  return affinitySeconds === 0 ? choice : `${choice}, affinity ${affinitySeconds} s`;
}

/** A connection to a service without endpoints is accepted and ended: as good as refused. */
function fateOf(
  listener: ListenerState,
  { source: client, destination }: Pick<Packet, 'source' | 'destination'>,
  bound: string | undefined,
): Fate {
  const { endpoints, affinitySeconds, choice, kept } = listener;
  if (endpoints.length === 0) return { action: 'reject' };
  const possible = bound === undefined ? endpoints.toSorted() : [bound];
  const shares = sharesOf(possible, isHash(choice) ? choice : 'default', client);
  const isKept = kept !== undefined && isSourceKept(kept, client, destination);
  const targets = possible
    .map((endpoint, index) => ({
      endpoint,
      probability: shares[index] ?? 0,
      masquerade: !isKept || addressOf(endpoint) === canonicalIP(client),
    }))
    .filter(({ probability }) => probability > 0);
  return { action: 'forward', targets, affinitySeconds };
}

function addressOf(endpoint: string): string | undefined {
  const place = splitIPPort(endpoint);
  return place && formatIP(place.ip);
}
