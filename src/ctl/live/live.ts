import { loadMode } from '../../app/modes.ts';
import type { Mode } from '../../backends/mode.ts';
import type { ExplanationReport } from '../../inspect/api.ts';
import { followTraces, type TraceStep } from '../../kernel/nft/trace.ts';
import { type KernelInterfaces, openKernel } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { sleep } from '../../lib/sleep.ts';
import { joinHostPort } from '../../model/ip.ts';
import { loadLibc } from '../../native/koffi-libc.ts';
import { hostCIDR, type Interest } from '../../trace/interest.ts';
import { destinationText, endingOf, endsOf, journeysOf, sourceText, stepTexts } from '../../trace/journey.ts';
import { traceError } from '../../trace/trace-error.ts';
import { TRACE_TABLE, whileTraced } from '../../trace/trace-table.ts';
import type { Paint } from '../terminal.ts';
import { openSender, type Sender, type SendOutcome } from './send.ts';

/** The way of the packet through the rules of this node. */
export interface Way {
  /** The first source and the last destination, as `ip:port`; null when no step shows them. */
  readonly from: string | null;
  readonly to: string | null;
  readonly isDropped: boolean;
  /** One line per step: rules that matched, and policies. */
  readonly steps: readonly string[];
}

/** The way of a packet that was sent, and how it differs from the decision. */
export interface LiveReport extends Way {
  readonly outcome: SendOutcome;
  /** Null where the trace cannot show it. */
  readonly differences: readonly string[] | null;
}

/** Time for the kernel to report the last steps. */
const settleMs = 100;

/**
 * Sends the explained packet from this node and traces it through the kernel. Rejects when the kernel does not permit
 * that, or when this node cannot send this packet.
 */
export async function sendLive(report: ExplanationReport, clock: Clock): Promise<LiveReport> {
  const { protocol, family, destination, port, origin } = report.packet;
  if (origin !== 'node') throw new Error('--live sends from this node: SRC must be "node"');
  if (protocol === 'SCTP') throw new Error('--live cannot send SCTP');
  const sender = await openSender(protocol, family, destination, port);
  try {
    const kernel = await openKernel(clock);
    try {
      const cidr = hostCIDR(destination);
      if (!cidr) throw new Error(`${destination} is not an address`);
      const { sourcePort } = sender;
      const interest: Interest = { family, protocol, source: 'node', destination: cidr, port, sourcePort };
      const { outcome, steps } = await trace(interest, sender, kernel, clock);
      const way = wayOf(steps, TRACE_TABLE);
      return { ...way, outcome, differences: liveDifferences(report, way, await loadMode(report.mode)) };
    } finally {
      kernel.close();
    }
  } catch (error) {
    throw traceError('the packet cannot be traced', error);
  } finally {
    sender.close();
  }
}

/** The way of the first packet that a rule of the table `tracer` marked, out of the steps of all packets. */
export function wayOf(reported: readonly TraceStep[], tracer: string): Way {
  const [journey = []] = journeysOf(reported, tracer);
  const { first, last } = endsOf(journey);
  return {
    from: first ? sourceText(first) : null,
    to: last ? destinationText(last) : null,
    isDropped: endingOf(journey).kind === 'stopped',
    steps: stepTexts(journey),
  };
}

async function trace(interest: Interest, sender: Sender, { nft }: KernelInterfaces, clock: Clock) {
  const steps: TraceStep[] = [];
  const failures: Error[] = [];
  const traces = followTraces(await loadLibc(), {
    step: (step) => steps.push(step),
    failed: (error) => failures.push(error),
    lost: () => failures.push(new Error('steps of the trace were lost')),
  });
  // Where the kernel does not remove the table by itself, Ctrl-C must not leave it behind. The work takes a second or two.
  const hold = () => {};
  process.on('SIGINT', hold);
  try {
    const outcome = await whileTraced(nft, [interest], { packets: 1 }, async () => {
      const seen = await sender.send();
      await sleep(clock, settleMs);
      return seen;
    });
    if (failures[0]) throw failures[0];
    return { outcome, steps };
  } finally {
    process.off('SIGINT', hold);
    traces.close();
  }
}

/**
 * How the way of a packet differs from the decision, in sentences. Null where the trace cannot show it: the mode is not
 * traceable, or its rules are those of legacy iptables.
 */
export function liveDifferences(
  { packet, planned }: Pick<ExplanationReport, 'packet' | 'planned'>,
  { to, isDropped, steps }: Way,
  { isTraceable = false }: Pick<Mode, 'isTraceable'>,
): readonly string[] | null {
  if (!isTraceable || to === null || steps.length === 0) return null;
  const { fate } = planned;
  if (fate.action === 'drop' || fate.action === 'reject') {
    return isDropped ? [] : [`The proxy decided to ${fate.action} the packet, but it went to ${to}.`];
  }
  if (isDropped) return ['The proxy decided to let the packet pass, but it was dropped.'];
  const wanted =
    fate.action === 'forward'
      ? fate.targets.map(({ endpoint }) => endpoint)
      : [joinHostPort(packet.destination, packet.port)];
  return wanted.includes(to) ? [] : [`The packet went to ${to}, not to ${wanted.join(' or ')}.`];
}

const outcomeTexts = {
  answered: 'and the connection was accepted',
  refused: 'and the connection was refused',
  unanswered: 'and no answer came within a second',
  sent: 'without waiting for an answer',
} as const;

/** The way of the packet that was sent, step by step. */
export function liveText({ packet, planned }: ExplanationReport, live: LiveReport, paint: Paint): string {
  const { protocol, destination, port } = packet;
  const from = live.from ?? 'this node';
  const sent = `Sent: ${protocol} from ${from} to ${joinHostPort(destination, port)}, ${outcomeTexts[live.outcome]}.\n`;
  const steps = live.steps.map((step) => `  ${step}\n`).join('');
  return `\n${sent}${verdictText(live, planned.fate.action === 'reject' ? 'rejected' : 'dropped', paint)}\n${steps}`;
}

/** `ended` is the word for a dropped packet: a trace shows a rejected packet as dropped. */
function verdictText({ to, isDropped, differences }: LiveReport, ended: string, paint: Paint): string {
  const where = isDropped
    ? `The packet was ${ended}`
    : `The packet went to ${to ?? 'a place that the trace does not show'}`;
  if (differences === null) return `${where}; the trace cannot show whether that is right.`;
  if (differences.length === 0) return paint('green', `${where}, as decided.`);
  return paint(
    'red',
    `WARNING: THE PACKET WENT ELSEWHERE\n${differences.map((text) => `  ! ${text}`).join('\n')}`,
  );
}
