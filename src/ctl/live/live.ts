import { loadMode } from '../../app/modes.ts';
import type { Mode } from '../../backends/mode.ts';
import type { ExplanationReport } from '../../inspect/api.ts';
import { followTraces, type TraceStep } from '../../kernel/nft/trace.ts';
import { type KernelInterfaces, openKernel } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { sleep } from '../../lib/sleep.ts';
import { messageOf } from '../../lib/thrown.ts';
import { joinHostPort } from '../../model/ip.ts';
import { loadLibc } from '../../native/koffi-libc.ts';
import type { Paint } from '../terminal.ts';
import { type Journey, journeyOf } from './journey.ts';
import { openSender, type Sender, type SendOutcome } from './send.ts';
import { type Connection, TRACE_TABLE, whileTraced } from './trace-table.ts';

/** The way of a packet that was sent, and how it differs from the decision. */
export interface LiveReport extends Journey {
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
      const connection = { family, protocol, destination, port, sourcePort: sender.sourcePort };
      const { outcome, steps } = await trace(connection, sender, kernel, clock);
      const journey = journeyOf(steps, TRACE_TABLE);
      return {
        ...journey,
        outcome,
        differences: liveDifferences(report, journey, await loadMode(report.mode)),
      };
    } finally {
      kernel.close();
    }
  } catch (error) {
    const reason = messageOf(error);
    const hint = /\bEPERM\b/.test(reason) ? '; tracing needs CAP_NET_ADMIN' : '';
    throw new Error(`the packet cannot be traced: ${reason}${hint}`, { cause: error });
  } finally {
    sender.close();
  }
}

async function trace(connection: Connection, sender: Sender, { nft }: KernelInterfaces, clock: Clock) {
  const steps: TraceStep[] = [];
  const failures: Error[] = [];
  const traces = followTraces(await loadLibc(), {
    step: (step) => steps.push(step),
    failed: (error) => failures.push(error),
  });
  try {
    const outcome = await whileTraced(nft, connection, async () => {
      const seen = await sender.send();
      await sleep(clock, settleMs);
      return seen;
    });
    if (failures[0]) throw failures[0];
    return { outcome, steps };
  } finally {
    traces.close();
  }
}

/**
 * How the way of a packet differs from the decision, in sentences. Null where the trace cannot show it: the mode is not
 * traceable, or its rules are those of legacy iptables.
 */
export function liveDifferences(
  { packet, planned }: Pick<ExplanationReport, 'packet' | 'planned'>,
  { to, isDropped, steps }: Journey,
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
