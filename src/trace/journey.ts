import { describeVerdict } from '../kernel/nft/describe-rule.ts';
import type { Hook } from '../kernel/nft/objects.ts';
import type { TraceStep } from '../kernel/nft/trace.ts';
import { type Family, formatIP, joinHostPort } from '../model/ip.ts';
import { isWatchingTable } from '../model/watching-table.ts';
import { MARK_CHAIN } from './trace-rules.ts';
import { placeOf } from './trace-table.ts';

/** Addresses of a packet at one place of its way. */
export interface Headers {
  readonly family: Family;
  /** IP protocol number. */
  readonly protocol: number;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly port: number;
}

/** A packet in one base chain, with the steps there and in the chains that it leads to. */
export interface Visit {
  /** `inet firewall`. */
  readonly table: string;
  readonly chain: string;
  readonly hook: Hook;
  /** The chain is one of the trace table. */
  readonly isObserver: boolean;
  /** On entry to the chain; undefined when they cannot be read. */
  readonly headers: Headers | undefined;
  /** Indexes of interfaces, where known. */
  readonly inInterface: number | undefined;
  readonly outInterface: number | undefined;
  readonly steps: readonly TraceStep[];
}

/** The way of one packet through the chains of this node. Never empty. */
export type Journey = readonly Visit[];

/** How a way ended. */
export type Ending =
  /** The rule or policy of this step dropped or rejected the packet. */
  | { readonly kind: 'stopped'; readonly hook: Hook; readonly step: TraceStep }
  /** It left by an interface. */
  | { readonly kind: 'left' }
  /** A socket of this node got it. */
  | { readonly kind: 'arrived' }
  /** It disappeared inside of a hook or after it, and no rule of nf_tables dropped it. */
  | { readonly kind: 'lost'; readonly hook: Hook; readonly where: 'inside' | 'after' };

const loopbackIndex = 1;

/** A packet passes fewer rules than this: what comes beyond is of another packet with the same id. */
const maxSteps = 10_000;

/**
 * Collects the steps of the packets that a rule of the table `tracer` marked, and drops those of other packets. Leaves out
 * the chains of other tables that only watch.
 */
export class Recording {
  readonly #tracer: string;
  readonly #packets: TraceStep[][] = [];
  /** By id; later packets may have the id of an earlier one. */
  readonly #open = new Map<number, TraceStep[]>();

  constructor(tracer: string) {
    this.#tracer = tracer;
  }

  /** Number of packets so far. */
  get size(): number {
    return this.#packets.length;
  }

  /** The way of each packet so far, in the order in which they were marked. */
  get journeys(): Journey[] {
    return this.#packets.map((steps) => visitsOf(steps, this.#tracer));
  }

  take(step: TraceStep): void {
    if (step.table !== this.#tracer && isWatchingTable(step.table)) return;
    const begun = this.#isMarking(step) ? [] : (this.#open.get(step.id) ?? returning(step, this.#packets));
    if (!begun || begun.length >= maxSteps) return;
    if (begun.length === 0) this.#packets.push(begun);
    begun.push(step);
    this.#open.set(step.id, begun);
  }

  #isMarking({ table, chain, ruleHandle }: TraceStep): boolean {
    return table === this.#tracer && chain === MARK_CHAIN && ruleHandle !== undefined;
  }
}

/** The ways of the marked packets, out of the steps of all packets. */
export function journeysOf(reported: readonly TraceStep[], tracer: string): Journey[] {
  const recording = new Recording(tracer);
  for (const step of reported) recording.take(step);
  return recording.journeys;
}

/** The packet that left by the loopback interface and comes back with this step: it then has another id. */
function returning(step: TraceStep, packets: readonly TraceStep[][]): TraceStep[] | undefined {
  if (step.inInterface !== loopbackIndex || step.outInterface !== undefined) return undefined;
  const now = JSON.stringify(headersOf(step));
  return packets.findLast((steps) => {
    const last = steps.findLast(({ network }) => network);
    return last?.outInterface === loopbackIndex && JSON.stringify(headersOf(last)) === now;
  });
}

function visitsOf(steps: readonly TraceStep[], tracer: string): Visit[] {
  const visits: (Visit & { readonly steps: TraceStep[] })[] = [];
  let hook: Hook = 'prerouting';
  for (const step of steps) {
    if (!step.network && visits.length > 0) {
      visits.at(-1)?.steps.push(step);
      continue;
    }
    const isObserver = step.table === tracer;
    if (isObserver) hook = placeOf(step.chain)?.hook ?? beginningOf(step);
    visits.push({
      table: `${step.family} ${step.table}`,
      chain: step.chain,
      hook,
      isObserver,
      headers: headersOf(step),
      inInterface: step.inInterface,
      outInterface: step.outInterface,
      steps: [step],
    });
  }
  return visits;
}

/** The hook at which the packet was marked: only a packet from elsewhere came by an interface. */
function beginningOf({ inInterface }: TraceStep): Hook {
  return inInterface === undefined ? 'output' : 'prerouting';
}

/** How the way ended. A packet that passed the last chain of a hook was let through there. */
export function endingOf(journey: Journey): Ending {
  for (const { hook, steps } of journey) {
    const step = steps.find(({ verdict }) => verdict?.kind === 'drop');
    if (step) return { kind: 'stopped', hook, step };
  }
  const observer = journey.findLast(({ isObserver }) => isObserver);
  const hook = observer?.hook ?? 'prerouting';
  if (placeOf(observer?.chain ?? '')?.place !== 'last') return { kind: 'lost', hook, where: 'inside' };
  if (hook === 'postrouting') return { kind: 'left' };
  return hook === 'input' ? { kind: 'arrived' } : { kind: 'lost', hook, where: 'after' };
}

/** The addresses of the packet when it came, and with which it went on. */
export function endsOf(journey: Journey): { first: Headers | undefined; last: Headers | undefined } {
  const headers = journey.flatMap((visit) => visit.headers ?? []);
  return { first: headers[0], last: headers.at(-1) };
}

export function sourceText({ source, sourcePort }: Headers): string {
  return joinHostPort(source, sourcePort);
}

export function destinationText({ destination, port }: Headers): string {
  return joinHostPort(destination, port);
}

/** One line per step of a way, without the chains of the trace table and the ends of chains. */
export function stepTexts(journey: Journey): string[] {
  return journey
    .filter(({ isObserver }) => !isObserver)
    .flatMap(({ steps }) => steps.filter(isTold).map(stepText));
}

/** Not the end of a chain without a verdict. */
function isTold({ kind, ruleHandle }: TraceStep): boolean {
  return kind !== 'rule' || ruleHandle !== undefined;
}

function stepText({ family, table, chain, kind, ruleHandle, verdict }: TraceStep): string {
  const what = kind === 'rule' ? `rule ${ruleHandle}` : kind;
  return `${family} ${table} ${chain} ${what}${verdict ? `: ${describeVerdict(verdict)}` : ''}`;
}

function headersOf({ network, transport }: TraceStep): Headers | undefined {
  if (!network || !transport || transport.length < 4) return undefined;
  const isIPv4 = (network[0] ?? 0) >> 4 === 4;
  const [family, start, length]: [Family, number, number] = isIPv4 ? ['IPv4', 12, 4] : ['IPv6', 8, 16];
  if (network.length < start + 2 * length) return undefined;
  const address = (offset: number) => formatIP({ family, bytes: network.slice(offset, offset + length) });
  const port = (offset: number) => ((transport[offset] ?? 0) << 8) | (transport[offset + 1] ?? 0);
  return {
    family,
    protocol: network[isIPv4 ? 9 : 6] ?? 0,
    source: address(start),
    sourcePort: port(0),
    destination: address(start + length),
    port: port(2),
  };
}
