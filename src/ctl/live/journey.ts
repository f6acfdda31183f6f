import { describeVerdict } from '../../kernel/nft/describe-rule.ts';
import type { TraceStep } from '../../kernel/nft/trace.ts';
import { type Family, formatIP, joinHostPort } from '../../model/ip.ts';

/** The way of one packet through the rules of this node. */
export interface Journey {
  /** `ip:port` that it left with, and that it was for in the end; null when no step told. */
  readonly from: string | null;
  readonly to: string | null;
  readonly isDropped: boolean;
  /** One line per step: rules that matched, and policies. */
  readonly steps: readonly string[];
}

/**
 * Picks the first packet that the table `tracer` has marked out of all steps that were told, and puts its way together.
 * The last headers that were told are those that it went on with.
 */
export function journeyOf(told: readonly TraceStep[], tracer: string): Journey {
  const steps = ofFirstPacket(told, tracer);
  const headers = steps.flatMap((step) => addressesOf(step) ?? []);
  const shown = steps.filter(({ table, kind, ruleHandle }) => {
    const isEndOfChain = kind === 'rule' && ruleHandle === undefined;
    return table !== tracer && !isEndOfChain;
  });
  return {
    from: headers[0]?.from ?? null,
    to: headers.at(-1)?.to ?? null,
    isDropped: steps.some(({ verdict }) => verdict?.kind === 'drop'),
    steps: shown.map(stepText),
  };
}

/** The kernel numbers all packets of a connection alike; with each, the rule that marks them is told again. */
function ofFirstPacket(told: readonly TraceStep[], tracer: string): TraceStep[] {
  const isMarking = ({ table, ruleHandle }: TraceStep) => table === tracer && ruleHandle !== undefined;
  const id = told.find(isMarking)?.id;
  const steps = told.filter((step) => step.id === id);
  const second = steps.findIndex((step, i) => i > 0 && isMarking(step));
  return second < 0 ? steps : steps.slice(0, second);
}

function stepText({ family, table, chain, kind, ruleHandle, verdict }: TraceStep): string {
  const what = kind === 'rule' ? `rule ${ruleHandle}` : kind;
  return `${family} ${table} ${chain} ${what}${verdict ? `: ${describeVerdict(verdict)}` : ''}`;
}

function addressesOf({ network, transport }: TraceStep): { from: string; to: string } | undefined {
  if (!network || !transport || transport.length < 4) return undefined;
  const isIPv4 = (network[0] ?? 0) >> 4 === 4;
  const [family, start, length]: [Family, number, number] = isIPv4 ? ['IPv4', 12, 4] : ['IPv6', 8, 16];
  if (network.length < start + 2 * length) return undefined;
  const at = (offset: number, portOffset: number) =>
    joinHostPort(
      formatIP({ family, bytes: network.slice(offset, offset + length) }),
      ((transport[portOffset] ?? 0) << 8) | (transport[portOffset + 1] ?? 0),
    );
  return { from: at(start, 0), to: at(start + length, 2) };
}
