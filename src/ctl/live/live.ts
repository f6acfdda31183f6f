import { loadMode } from '../../app/modes.ts';
import type { Mode } from '../../backends/mode.ts';
import type { ExplanationReport } from '../../inspect/api.ts';
import { followTraces, type TraceStep } from '../../kernel/nft/trace.ts';
import { type KernelInterfaces, openKernel } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import { joinHostPort } from '../../model/ip.ts';
import { loadLibc } from '../../native/koffi-libc.ts';
import { type Journey, journeyOf } from './journey.ts';
import { type Outcome, openSender, type Sender } from './send.ts';
import { type Connection, TRACE_TABLE, whileTraced } from './trace-table.ts';

/** What became of a packet that was really sent. */
export interface LiveReport extends Journey {
  readonly outcome: Outcome;
  /** In what that is not what was decided; null where the trace cannot show it. */
  readonly differences: readonly string[] | null;
}

/** For the kernel to tell the last steps. */
const settleMs = 100;

/**
 * Sends the packet that was explained, from this node, and follows it through the kernel. Rejects when the kernel does
 * not let us, or when it is not a packet that this node could send.
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
    const hint = /\bEPERM\b/.test(reason) ? '; it takes CAP_NET_ADMIN' : '';
    throw new Error(`a packet cannot be followed: ${reason}${hint}`, { cause: error });
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
      await new Promise<void>((resolve) => clock.setTimeout(resolve, settleMs));
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
    return isDropped ? [] : [`The plan is to ${fate.action} the packet, and it went on to ${to}.`];
  }
  if (isDropped) return ['The plan is to let the packet through, and it was dropped.'];
  const wanted =
    fate.action === 'forward'
      ? fate.targets.map(({ endpoint }) => endpoint)
      : [joinHostPort(packet.destination, packet.port)];
  return wanted.includes(to) ? [] : [`The packet went to ${to}, which is none of ${wanted.join(', ')}.`];
}
