import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type Mode, type Size, serviceIP } from './cluster.ts';
import { type Probe, sharedClock } from './probe.ts';
import { type Cpu, cpuSince, Program, removeRules } from './program.ts';

/** Half of the samples are below the first figure, 99 in 100 below the second. */
export interface Spread {
  readonly p50: number;
  readonly p99: number;
}

export interface Figures {
  readonly coldSeconds: number;
  /** Duration of the first sync, from the program's metric. The last service may be served before it ends. */
  readonly firstSyncSeconds: number;
  /** CPU time until some seconds after the first packet, when the program is idle. */
  readonly coldCpu: Cpu;
  /** Longest response time of the health server until then. */
  readonly stallMs: number;
  /** Time until an endpoint replaced another. */
  readonly replaced: Spread;
  /** Time until a change of the number of endpoints took effect. */
  readonly rescaled: Spread;
  readonly cpuPerChange: Cpu;
  /** From a restart on existing rules until a change made before the restart takes effect. */
  readonly restartSeconds: number;
  readonly residentMB: number;
  readonly peakMB: number;
}

export interface RateFigures {
  readonly changesPerSecond: number;
  readonly effect: Spread;
  /** From the last change until its effect. */
  readonly backlogMs: number;
  readonly cpuPerChange: Cpu;
}

/** A program, and the mode to run it in. */
export interface Subject {
  readonly path: string;
  readonly mode: Mode;
  /** More flags. */
  readonly args?: readonly string[];
  /** The command that runs it, see `Program`. */
  readonly through?: readonly string[];
}

/** The peer takes minutes for a first sync in an emulated machine. */
const patienceMs = 900_000;
export const settledMs = 3000;
export const metricsURL = 'http://127.0.0.1:10249/metrics';
const pollMs = 200;
const changesPerRound = 4;
/** In the steady stream, one of this many changes is probed for its effect. */
const markEvery = 50;
const tickMs = 2;

/** Measures from the start of the program until a packet arrives, then one change after the other. */
export async function measureProgram(
  subject: Subject,
  size: Size,
  probe: Probe,
  /** Number of changes of each kind. */
  changes: number,
): Promise<Figures> {
  return withProgram(subject, size, probe, async (cluster, program, coldSeconds) => {
    const firstSyncSeconds = await firstSync(() => program.hasEnded, metricsURL);
    // The CPU time of a child process counts only after it has ended.
    await sleep(settledMs);
    const coldCpu = program.cpu();
    const stallMs = await probe.longestAnswer();
    const before = program.cpu();
    const replaced: number[] = [];
    const rescaled: number[] = [];
    for (let i = 0; i < changes; i++) {
      const index = (1 + i * 37) % (size.services - 1);
      await patiently(program, changeEffect(cluster, probe, index, 'refusing', 'refused'));
      rescaled.push(await patiently(program, changeEffect(cluster, probe, index, 'listener', 'connected')));
      replaced.push(await patiently(program, changeEffect(cluster, probe, index, 'one-refusing', 'refused')));
      cluster.set(index, 'silent');
    }
    await sleep(settledMs);
    const cpu = cpuSince(before, program.cpu());
    const { now, peak } = program.memory();
    await program.stop();
    return {
      coldSeconds,
      firstSyncSeconds,
      coldCpu,
      stallMs,
      replaced: spread(replaced),
      rescaled: spread(rescaled),
      cpuPerChange: perChange(cpu, changes * changesPerRound),
      restartSeconds: await measureRestart(subject, cluster, probe),
      residentMB: now,
      peakMB: peak,
    };
  });
}

/** Waits until the first sync has ended. Returns the seconds that it took, from the program's metrics. */
export async function firstSync(hasEnded: () => boolean, metrics: string): Promise<number> {
  for (let waited = 0; waited < patienceMs && !hasEnded(); waited += pollMs) {
    const page = await fetch(metrics).then(
      (answer) => answer.text(),
      () => '',
    );
    const [count, sum] = ['count', 'sum'].map((suffix) => {
      const sample = `kubeproxy_sync_proxy_rules_duration_seconds_${suffix}{ip_family="IPv4"} `;
      const line = page.split('\n').find((each) => each.startsWith(sample)) ?? '';
      return Number(line.slice(sample.length));
    });
    if (count && sum) return sum;
    await sleep(pollMs);
  }
  throw new Error('no sync ended in time');
}

async function measureRestart({ path }: Subject, cluster: Cluster, probe: Probe): Promise<number> {
  cluster.set(0, 'listener');
  const program = new Program(path, cluster.config);
  const begun = sharedClock();
  try {
    const reached = await patiently(program, probe.expect(serviceIP(0), 'connected'));
    return (reached - begun) / 1000;
  } finally {
    await program.stop();
  }
}

/** Measures whether the program keeps up with a steady stream of changes. */
export async function measureRate(
  subject: Subject,
  size: Size,
  probe: Probe,
  perSecond: number,
  seconds: number,
): Promise<RateFigures> {
  return withProgram(subject, size, probe, async (cluster, program) => {
    await sleep(settledMs);
    const before = program.cpu();
    const begun = sharedClock();
    const effects: Promise<number>[] = [];
    let count = 0;
    let isListening = true;
    const mark = (): void => {
      isListening = !isListening;
      const outcome = isListening ? 'connected' : 'refused';
      const who = isListening ? 'listener' : 'one-refusing';
      effects.push(changeEffect(cluster, probe, size.services - 1, who, outcome));
    };
    let last: Promise<number> = Promise.resolve(0);
    while (sharedClock() - begun < seconds * 1000) {
      const due = Math.floor(((sharedClock() - begun) * perSecond) / 1000);
      for (; count < due; count++) {
        // The effect of the last probed change must be visible before the next one, or the probe could miss it.
        if (count % markEvery === 0 && (await isSettled(last))) {
          mark();
          last = effects.at(-1) ?? last;
        } else cluster.set((count * 37) % (size.services - 1), count % 3 === 0 ? 'refusing' : 'silent');
      }
      await sleep(tickMs);
    }
    const elapsed = sharedClock() - begun;
    if (await isSettled(last)) mark();
    const backlogMs = await patiently(program, effects.at(-1) ?? last);
    const cpu = cpuSince(before, program.cpu());
    return {
      changesPerSecond: count / (elapsed / 1000),
      effect: spread(await Promise.all(effects)),
      backlogMs,
      cpuPerChange: perChange(cpu, count),
    };
  });
}

/** Creates a cluster, starts the program and waits for its first packet; passes the seconds that this took to `use`. */
export async function withProgram<T>(
  { path, mode, args, through }: Subject,
  size: Size,
  probe: Probe,
  use: (cluster: Cluster, program: Program, coldSeconds: number) => Promise<T>,
): Promise<T> {
  removeRules();
  const cluster = await Cluster.open(size, { mode });
  const program = new Program(path, cluster.config, args, through);
  const begun = sharedClock();
  try {
    await probe.watchHealth();
    const reached = await patiently(program, probe.expect(serviceIP(size.services - 1), 'connected'));
    return await use(cluster, program, (reached - begun) / 1000);
  } finally {
    await program.stop();
    await cluster.close();
  }
}

/** The time in ms from a change until a connection sees it. */
export async function changeEffect(
  cluster: Cluster,
  probe: Probe,
  index: number,
  who: Parameters<Cluster['set']>[1],
  outcome: Parameters<Probe['expect']>[1],
): Promise<number> {
  const seen = probe.expect(serviceIP(index), outcome);
  const begun = sharedClock();
  cluster.set(index, who);
  return (await seen) - begun;
}

/** Rejects when the program ends, or after minutes. */
export async function patiently<T>(program: Program, promise: Promise<T>): Promise<T> {
  const given = new AbortController();
  const impatience = (async () => {
    for (let waited = 0; waited < patienceMs; waited += 500) {
      await sleep(500, undefined, { signal: given.signal });
      if (program.hasEnded) throw new Error('the program ended');
    }
    throw new Error('no packet came through in time');
  })();
  impatience.catch(() => undefined);
  try {
    return await Promise.race([promise, impatience]);
  } finally {
    given.abort();
  }
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}

function perChange({ own, kernel }: Cpu, changes: number): Cpu {
  return { own: own / changes, kernel: kernel / changes };
}

export function spread(samples: readonly number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
