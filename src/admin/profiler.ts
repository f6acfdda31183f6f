import type { Session } from 'node:inspector/promises';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { cpuProfileToPprof, heapProfileToPprof } from './pprof-format.ts';

/** Bytes between two heap samples; V8's default is too coarse for a small proxy. */
const heapInterval = 64 * 1024;

export type ProfileKind = 'profile' | 'heap' | 'allocs';

/** Thrown while another profile is being taken: V8 has one profiler per thread. */
export class ProfilerBusyError extends Error {
  constructor() {
    super('another profile is being taken; try again when it has ended');
    this.name = 'ProfilerBusyError';
  }
}

/** Takes profiles of the main thread, one at a time, with the inspector that is part of Node. */
export class Profiler {
  readonly #clock: Clock;
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes a profile for `durationMs`, or until the signal aborts, and returns it in pprof format, uncompressed.
   * `heap` shows what was allocated meanwhile and is still in use, `allocs` everything that was allocated.
   */
  async take(kind: ProfileKind, durationMs: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#busy) throw new ProfilerBusyError();
    this.#busy = true;
    try {
      const { Session } = await import('node:inspector/promises');
      const session = new Session();
      session.connect();
      try {
        const wait = () => sleep(this.#clock, durationMs, signal);
        if (kind === 'profile') return await this.#cpu(session, wait);
        return await this.#heap(session, wait, kind);
      } finally {
        session.disconnect();
      }
    } finally {
      this.#busy = false;
    }
  }

  async #cpu(session: Session, wait: () => Promise<void>): Promise<Uint8Array<ArrayBuffer>> {
    const started = this.#clock.now();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await wait();
    const { profile } = await session.post('Profiler.stop');
    return cpuProfileToPprof(profile, started);
  }

  async #heap(
    session: Session,
    wait: () => Promise<void>,
    kind: 'heap' | 'allocs',
  ): Promise<Uint8Array<ArrayBuffer>> {
    const [startMs, started] = [this.#clock.now(), this.#clock.monotonic()];
    const dead = kind === 'allocs';
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: heapInterval,
      includeObjectsCollectedByMajorGC: dead,
      includeObjectsCollectedByMinorGC: dead,
    });
    await wait();
    const { profile } = await session.post('HeapProfiler.stopSampling');
    const durationMs = this.#clock.monotonic() - started;
    const type = dead ? 'alloc_space' : 'inuse_space';
    return heapProfileToPprof(profile, { startMs, durationMs, interval: heapInterval, type });
  }
}
