import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { Flow, FlowFilter } from '../kernel/ct/flow.ts';
import { IPS_ASSURED, IPS_SEEN_REPLY } from '../kernel/ct/tracked-flow.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { formatIP, parseIP } from '../model/ip.ts';
import { endingOf, endsOf, type Headers, type Journey } from './journey.ts';
import type { Answer } from './story.ts';

/** TCP_CONNTRACK_SYN_RECV and TCP_CONNTRACK_CLOSE. */
const tcpStates = { synReceived: 2, closed: 8 } as const;

const lookEveryMs = 100;

/** What the kernel's connection table says of an answer. */
export function answerOf(flow: Flow): Exclude<Answer, 'unknown'> {
  if ((flow.status & IPS_SEEN_REPLY) === 0) return 'unanswered';
  if (flow.tcpState === tcpStates.synReceived) return 'incomplete';
  const isReset = flow.tcpState === tcpStates.closed && (flow.status & IPS_ASSURED) === 0;
  return isReset ? 'refused' : 'answered';
}

/**
 * Looks in the connection table for answers to packets that were delivered. It must look often: the kernel forgets a
 * connection as soon as a reset is the only answer.
 */
export class Answers {
  readonly #conntrack: Pick<ConntrackClient, 'forEachFlow'>;
  readonly #known = new Map<string, Answer>();

  constructor(conntrack: Pick<ConntrackClient, 'forEachFlow'>) {
    this.#conntrack = conntrack;
  }

  of(journey: Journey): Answer {
    const { first, last } = endsOf(journey);
    if (!first || !last) return 'unknown';
    const known = this.#known.get(keyOf(first));
    if (known !== undefined) return known;
    // The kernel tracks every connection that it translates. When the entry is gone, a reset has ended it.
    const isTranslated = first.destination !== last.destination || first.port !== last.port;
    return isTranslated && first.protocol === protocolNumbers.TCP ? 'refused' : 'unknown';
  }

  /** Looks for the packets that have no answer yet: once per destination. What the kernel does not tell stays unknown. */
  async look(journeys: readonly Journey[]): Promise<void> {
    const pending = journeys.filter((one) => this.#isPending(one)).flatMap((one) => endsOf(one).first ?? []);
    for (const group of Map.groupBy(pending, destinationKey).values()) await this.#lookFor(group);
  }

  /** Looks until every packet has an answer, or until time is over. */
  async wait(journeys: readonly Journey[], clock: Clock, ms: number): Promise<void> {
    const end = clock.monotonic() + ms;
    for (;;) {
      await this.look(journeys);
      const isPending = journeys.some((journey) => this.#isPending(journey));
      if (!isPending || clock.monotonic() >= end) return;
      await sleep(clock, lookEveryMs);
    }
  }

  #isPending(journey: Journey): boolean {
    const { kind } = endingOf(journey);
    if (kind !== 'left' && kind !== 'arrived') return false;
    const { first } = endsOf(journey);
    const known = first && this.#known.get(keyOf(first));
    return known !== 'answered' && known !== 'refused';
  }

  async #lookFor(group: readonly Headers[]): Promise<void> {
    const found = await answersTo(group, this.#conntrack);
    for (const headers of group) {
      const key = keyOf(headers);
      const answer = found.get(key);
      const isGone = !answer && this.#known.has(key) && headers.protocol === protocolNumbers.TCP;
      if (answer || isGone) this.#known.set(key, answer ?? 'refused');
    }
  }
}

/** What came back to connections to one destination, by `keyOf`. */
async function answersTo(
  group: readonly Headers[],
  conntrack: Pick<ConntrackClient, 'forEachFlow'>,
): Promise<ReadonlyMap<string, Answer>> {
  const found = new Map<string, Answer>();
  const [headers] = group;
  const destination = headers && parseIP(headers.destination);
  if (!destination) return found;
  // A busy destination has many flows: most are told apart by this number alone.
  const ports = new Set(group.map(({ sourcePort }) => sourcePort));
  const filter: FlowFilter = {
    family: headers.family,
    protocol: headers.protocol,
    originalDestinationPort: headers.port,
    originalDestination: destination.bytes,
  };
  try {
    await conntrack.forEachFlow(filter, {
      flow: (flow) => {
        if (ports.has(flow.original.sourcePort)) found.set(keyOf(headersOf(flow)), answerOf(flow));
      },
      restart: () => found.clear(),
    });
  } catch {
    // The kernel does not track connections, or its table changes too fast: then nothing is known.
  }
  return found;
}

function headersOf({ family, protocol, original }: Flow): Headers {
  const address = (bytes: Uint8Array) => formatIP({ family, bytes });
  return {
    family,
    protocol,
    source: address(original.source),
    sourcePort: original.sourcePort,
    destination: address(original.destination),
    port: original.destinationPort,
  };
}

function destinationKey({ protocol, destination, port }: Headers): string {
  return [protocol, destination, port].join(' ');
}

function keyOf({ protocol, source, sourcePort, destination, port }: Headers): string {
  return [protocol, source, sourcePort, destination, port].join(' ');
}
