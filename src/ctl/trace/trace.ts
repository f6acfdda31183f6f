import { allModes, loadMode } from '../../app/modes.ts';
import type { Mode } from '../../backends/mode.ts';
import { openTracing } from '../../kernel/open.ts';
import { count } from '../../lib/count.ts';
import { formatDuration, toMillis } from '../../lib/duration.ts';
import { messageOf } from '../../lib/thrown.ts';
import { families } from '../../model/ip.ts';
import type { AskedAbout, ProxyKnowledge } from '../../trace/evidence.ts';
import { followPackets, type TracedMode } from '../../trace/follow.ts';
import type { TraceReport } from '../../trace/report.ts';
import { traceError } from '../../trace/trace-error.ts';
import { type CommandContext, print } from '../command.ts';
import { requireSameKernel } from '../same-kernel.ts';
import { namespaceOf } from '../selector.ts';
import type { ReportSource } from '../source.ts';
import { EXIT_DIFFERS, EXIT_OK, type ExitCode } from '../terminal.ts';
import { type Subject, subjectOf } from './subject.ts';
import { isFine, traceText } from './trace-text.ts';

/** Follows packets of others and tells what became of them. Ctrl-C ends it early, with what was seen so far. */
export async function showTrace(context: CommandContext): Promise<ExitCode> {
  const { args, options, source, terminal, paint, layout } = context;
  if (source.pages) await requireSameKernel(source.pages);
  const subject = await subjectOf(args, source, namespaceOf(options));
  const proxy = await proxyKnowledge(source, (note) => terminal.stderr.write(note));
  const most = count(options.packets, 'connection');
  terminal.stderr.write(
    `Following ${most} of ${subject.text} at most, for ${formatDuration(options.for)}; Ctrl-C ends it.\n`,
  );
  const report = await untilInterrupted((signal) => trace(context, subject, proxy, signal));
  print(context, report, () => traceText(report, paint, layout));
  return report.connections.every(isFine) ? EXIT_OK : EXIT_DIFFERS;
}

async function trace(
  { options, clock }: CommandContext,
  { text, interests }: Subject,
  proxy: ProxyKnowledge & { readonly mode: TracedMode | undefined },
  signal: AbortSignal,
): Promise<TraceReport> {
  try {
    const kernel = await openTracing(clock);
    try {
      const question = { subject: text, interests, packets: options.packets, forMs: toMillis(options.for) };
      return await followPackets(question, proxy, kernel, clock, signal);
    } finally {
      kernel.close();
    }
  } catch (error) {
    throw traceError('packets cannot be traced', error);
  }
}

async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const abort = () => interrupted.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, abort);
  try {
    return await work(interrupted.signal);
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, abort);
  }
}

/** What the proxy, or the plans of one, can tell. Without an answer, rules of any mode count as those of the proxy. */
async function proxyKnowledge(
  source: ReportSource,
  note: (text: string) => void,
): Promise<ProxyKnowledge & { readonly mode: TracedMode | undefined }> {
  const mode = await modeOf(source, note);
  const modes = mode ? [mode] : await allModes();
  return {
    mode: mode && { name: mode.name, isTraceable: mode.isTraceable ?? false },
    isOurs: (family, table, chain) =>
      modes.some(
        (one) =>
          one.chainNames?.test(chain) ||
          families.some((each) =>
            one.tablesOf?.(each).some((own) => own.family === family && own.name === table),
          ),
      ),
    explain: ({ port, ...rest }: AskedAbout) =>
      source.explain({ ...rest, port: String(port) }).catch(() => undefined),
  };
}

async function modeOf(source: ReportSource, note: (text: string) => void): Promise<Mode | undefined> {
  if (!source.pages) return undefined;
  try {
    return await loadMode((await source.status()).mode);
  } catch (error) {
    note(
      `${messageOf(error)}; the trace goes on without the names of Services and the reasons of kube-proxy\n`,
    );
    return undefined;
  }
}
