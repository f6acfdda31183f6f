import { API_VERSION } from '../inspect/api.ts';
import { legacyTables } from '../kernel/iptables/table-reader.ts';
import type { ChainRef } from '../kernel/nft/objects.ts';
import type { TraceListener } from '../kernel/nft/trace.ts';
import type { TraceKernel } from '../kernel/open.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { families } from '../model/ip.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import { Answers } from './answers.ts';
import { evidenceOf, type KernelFacts, type ProxyKnowledge } from './evidence.ts';
import type { Interest } from './interest.ts';
import { type Journey, Recording } from './journey.ts';
import type { TracedConnection, TraceReport } from './report.ts';
import { storyOf } from './story.ts';
import { TRACE_TABLE, whileTraced } from './trace-table.ts';

/** Which packets to follow, and how many for how long. */
export interface TraceQuestion {
  readonly subject: string;
  readonly interests: readonly Interest[];
  readonly packets: number;
  readonly forMs: number;
}

/** The mode of the proxy, as far as it concerns a trace. */
export interface TracedMode {
  readonly name: ProxyMode;
  readonly isTraceable: boolean;
  /** Open connections take the fast path. */
  readonly hasFastPath: boolean;
}

/** What of the kernel is used to follow packets. */
export interface FollowKernel {
  readonly nft: Pick<TraceKernel['nft'], 'commit'>;
  readonly rules: KernelFacts['rules'];
  readonly route: KernelFacts['route'] & Pick<TraceKernel['route'], 'listLinks'>;
  readonly conntrack: Pick<TraceKernel['conntrack'], 'forEachFlow'>;
  readonly follow: (listener: TraceListener) => { close(): void };
}

/** How often the connection table is looked at while packets come. */
const lookEveryMs = 250;
/** Time for the last packets to reach the end of their way, and for the kernel to report their steps. */
const settleMs = 200;
/** After that long without an answer, there is none. */
const answerMs = 2_000;

/**
 * Follows the first packets of connections until enough were seen, time is over or the signal aborts, and tells what
 * became of each. Rejects when the kernel does not let this process trace, and when it stops to report steps.
 */
export async function followPackets(
  question: TraceQuestion,
  proxy: ProxyKnowledge & { readonly mode: TracedMode | undefined },
  kernel: FollowKernel,
  clock: Clock,
  signal: AbortSignal,
): Promise<TraceReport> {
  const [time, start] = [clock.now(), clock.monotonic()];
  const answers = new Answers(kernel.conntrack);
  const { journeys, isIncomplete } = await record(question, kernel, answers, clock, signal);
  await answers.wait(journeys, clock, answerMs);
  return {
    apiVersion: API_VERSION,
    kind: 'Trace',
    mode: proxy.mode?.name ?? null,
    time: new Date(time).toISOString(),
    seconds: (clock.monotonic() - start) / 1000,
    subject: question.subject,
    limit: question.packets,
    isIncomplete,
    notShown: notShown(proxy.mode),
    connections: await storiesOf(journeys, answers, proxy, kernel),
  };
}

async function record(
  { interests, packets, forMs }: TraceQuestion,
  { nft, follow }: FollowKernel,
  answers: Answers,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ journeys: readonly Journey[]; isIncomplete: boolean }> {
  const recording = new Recording(TRACE_TABLE);
  const enough = new AbortController();
  const failures: Error[] = [];
  let isIncomplete = false;
  const traces = follow({
    step: (step) => {
      recording.take(step);
      if (recording.size >= packets) enough.abort();
    },
    lost: () => {
      isIncomplete = true;
    },
    failed: (error) => {
      failures.push(error);
      enough.abort();
    },
  });
  const ended = AbortSignal.any([signal, enough.signal]);
  try {
    await whileTraced(nft, interests, { packets }, async (stopMarking) => {
      const end = clock.monotonic() + forMs;
      let pause = lookEveryMs;
      while (!ended.aborted && clock.monotonic() < end) {
        await sleep(clock, Math.min(pause, end - clock.monotonic()), ended);
        const start = clock.monotonic();
        await answers.look(recording.journeys);
        // A large table takes long to read: then look less often.
        pause = Math.max(lookEveryMs, 10 * (clock.monotonic() - start));
      }
      await stopMarking();
      await sleep(clock, settleMs);
    });
  } finally {
    traces.close();
  }
  if (failures[0]) throw failures[0];
  return { journeys: recording.journeys, isIncomplete };
}

async function storiesOf(
  journeys: readonly Journey[],
  answers: Answers,
  proxy: ProxyKnowledge,
  { rules, route }: FollowKernel,
): Promise<TracedConnection[]> {
  const links = await route.listLinks();
  // Connections that went the same way share the answers.
  const asked = { ...proxy, explain: remembering(proxy.explain) };
  const facts = {
    rules: { listChainRules: remembering((chain: ChainRef) => rules.listChainRules(chain)) },
    route,
    files: systemFiles,
    interfaces: new Map(links.map(({ index, name }) => [index, name])),
  };
  const stories: TracedConnection[] = [];
  for (const journey of journeys) {
    const evidence = await evidenceOf(journey, answers.of(journey), asked, facts);
    const story = storyOf(journey, evidence);
    if (story) stories.push(story);
  }
  return stories;
}

/** Asks each question once. */
function remembering<Q, A>(ask: (question: Q) => Promise<A>): (question: Q) => Promise<A> {
  const known = new Map<string, Promise<A>>();
  return (question) => {
    const key = JSON.stringify(question);
    const answer = known.get(key) ?? ask(question);
    known.set(key, answer);
    return answer;
  };
}

function notShown(mode: TracedMode | undefined): string[] {
  const legacy = [...new Set(families.flatMap((family) => [...legacyTables(systemFiles, family)]))];
  const tables = legacy.filter(Boolean).sort().join(', ');
  return [
    ...(mode && !mode.isTraceable
      ? [`In ${mode.name} mode kube-proxy decides outside of nf_tables: the trace shows only the result.`]
      : []),
    ...(mode?.hasFastPath
      ? [
          'Packets of connections on the fast path skip all rules: kube-proxyctl flows shows these connections.',
        ]
      : []),
    ...(tables === '' ? [] : [`Rules of legacy iptables (tables ${tables}) are not shown.`]),
  ];
}
