import { allModes, loadMode } from '../../app/modes.ts';
import { kubeletOwnerOf } from '../../backends/kubelet-chains.ts';
import type { Mode } from '../../backends/mode.ts';
import { openTracing } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import { families } from '../../model/ip.ts';
import type { AskedAbout, ProxyKnowledge } from '../../trace/evidence.ts';
import { followPackets, type TracedMode } from '../../trace/follow.ts';
import type { TraceReport } from '../../trace/report.ts';
import { traceError } from '../../trace/trace-error.ts';
import type { ReportSource } from '../source.ts';
import type { Subject } from './subject.ts';

/** What a proxy knows, for the stories of a trace. */
export type TraceKnowledge = ProxyKnowledge & { readonly mode: TracedMode | undefined };

/** How many connections to follow at most, and for how long. */
export interface TraceExtent {
  readonly packets: number;
  readonly forMs: number;
}

/** Follows packets through the kernel of this process. Rejects with an error that can be shown to the user. */
export async function followSubject(
  { text, interests }: Subject,
  extent: TraceExtent,
  proxy: TraceKnowledge,
  clock: Clock,
  signal: AbortSignal,
): Promise<TraceReport> {
  try {
    const kernel = await openTracing(clock);
    try {
      return await followPackets({ subject: text, interests, ...extent }, proxy, kernel, clock, signal);
    } finally {
      kernel.close();
    }
  } catch (error) {
    throw traceError('packets cannot be traced', error);
  }
}

/** What the proxy, or the plans of one, can tell. Without an answer, rules of any mode count as those of the proxy. */
export async function proxyKnowledge(
  source: ReportSource,
  note: (text: string) => void,
): Promise<TraceKnowledge> {
  const running = await runningMode(source, note);
  const modes = running ? [running.mode] : await allModes();
  return {
    mode: running && {
      name: running.mode.name,
      isTraceable: running.mode.isTraceable ?? false,
      hasFastPath: running.hasFastPath,
    },
    isOurs: (family, table, chain) =>
      modes.some(
        (one) =>
          one.chainNames?.test(chain) ||
          families.some((each) =>
            one.tablesOf?.(each).some((own) => own.family === family && own.name === table),
          ),
      ),
    ownerOf: kubeletOwnerOf,
    explain: ({ port, ...rest }: AskedAbout) =>
      source.explain({ ...rest, port: String(port) }).catch(() => undefined),
  };
}

async function runningMode(
  source: ReportSource,
  note: (text: string) => void,
): Promise<{ mode: Mode; hasFastPath: boolean } | undefined> {
  if (!source.pages) return undefined;
  try {
    const { mode, families: reports } = await source.status();
    const hasFastPath = reports.some(({ fastPath }) => fastPath?.inUse);
    return { mode: await loadMode(mode), hasFastPath };
  } catch (error) {
    note(
      `${messageOf(error)}; the trace goes on without the names of Services and the reasons of kube-proxy\n`,
    );
    return undefined;
  }
}
