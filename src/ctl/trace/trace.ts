import { count } from '../../lib/count.ts';
import { formatDuration, toMillis } from '../../lib/duration.ts';
import { isFine } from '../../trace/trace-words.ts';
import { type CommandContext, print } from '../command.ts';
import { requireSameKernel } from '../same-kernel.ts';
import { namespaceOf } from '../selector.ts';
import { EXIT_DIFFERS, EXIT_OK, type ExitCode } from '../terminal.ts';
import { followSubject, proxyKnowledge } from './follow-subject.ts';
import { subjectOf } from './subject.ts';
import { traceText } from './trace-text.ts';

/** Follows packets of others and tells what became of them. Ctrl-C ends it early, with what was seen so far. */
export async function showTrace(context: CommandContext): Promise<ExitCode> {
  const { args, options, source, terminal, paint, layout, clock } = context;
  if (source.pages) await requireSameKernel(source.pages);
  const subject = await subjectOf(args, source, namespaceOf(options));
  const proxy = await proxyKnowledge(source, (note) => terminal.stderr.write(note));
  const most = count(options.packets, 'connection');
  terminal.stderr.write(
    `Following ${most} of ${subject.text} at most, for ${formatDuration(options.for)}; Ctrl-C ends it.\n`,
  );
  const extent = { packets: options.packets, forMs: toMillis(options.for) };
  const report = await untilInterrupted((signal) => followSubject(subject, extent, proxy, clock, signal));
  print(context, report, () => traceText(report, paint, layout));
  return report.connections.every(isFine) ? EXIT_OK : EXIT_DIFFERS;
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
