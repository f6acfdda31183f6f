import { describeVerdict } from '../../kernel/nft/describe-rule.ts';
import type { TraceStep } from '../../kernel/nft/trace.ts';
import { type Family, formatIP, joinHostPort } from '../../model/ip.ts';

/** The way of one packet through the rules of this node. */
export interface Journey {
  /** The first source and the last destination, as `ip:port`; null when no step shows them. */
  readonly from: string | null;
  readonly to: string | null;
  readonly isDropped: boolean;
  /** One line per step: rules that matched, and policies. */
  readonly steps: readonly string[];
}

/**
 * The way of the first packet that a rule of the table `tracer` marked, out of all steps that the kernel reported. The
 * last reported headers are those with which the packet went on.
 */
export function journeyOf(reported: readonly TraceStep[], tracer: string): Journey {
  const steps = ofFirstPacket(reported, tracer);
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

/** All packets of a connection have the same id. For each packet the kernel reports the marking rule again. */
function ofFirstPacket(reported: readonly TraceStep[], tracer: string): TraceStep[] {
  const isMarking = ({ table, ruleHandle }: TraceStep) => table === tracer && ruleHandle !== undefined;
  const id = reported.find(isMarking)?.id;
  const steps = reported.filter((step) => step.id === id);
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
