import type { Journalist } from '../inspect/journal.ts';
import type { Clock } from '../lib/clock.ts';
import { type Problem, STARTING } from '../model/problem.ts';
import type { SourceStatus } from '../model/source-status.ts';

const LOOK_EVERY_MS = 1_000;

export interface JournalWatchOptions {
  readonly journal: Journalist;
  readonly problems: () => readonly Problem[];
  readonly sources: () => SourceStatus;
  readonly clock: Clock;
}

/** Looks every second which problems and which broken connections to the API server began or ended, and notes that. */
export class JournalWatch {
  readonly #options: JournalWatchOptions;
  /** The first text of each kind of problem in each family. */
  #problems: ReadonlyMap<string, Problem> = new Map();
  /** Resources without a watch. */
  readonly #lost = new Set<string>();

  constructor(options: JournalWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.look();
    this.#options.clock.setTimeout(() => this.start(), LOOK_EVERY_MS);
  }

  look(): void {
    this.#lookAtWatches();
    this.#lookAtProblems();
  }

  /** A watch that the server ended is opened again at once; only an attempt that failed counts as a loss. */
  #lookAtWatches(): void {
    const { journal, sources } = this.#options;
    for (const { resource, state, reason } of sources().watches) {
      const name = resource.toLowerCase();
      if (state === 'connected') {
        if (this.#lost.delete(name)) journal.note({ event: 'WatchRegained', text: name });
      } else if (reason !== undefined && !this.#lost.has(name)) {
        this.#lost.add(name);
        journal.note({ event: 'WatchLost', text: `${name}: ${reason}` });
      }
    }
  }

  #lookAtProblems(): void {
    const { journal, problems } = this.#options;
    const before = this.#problems;
    const now = new Map<string, Problem>();
    for (const problem of problems()) {
      const key = `${problem.kind} ${problem.family}`;
      if (problem.kind !== STARTING && !now.has(key)) now.set(key, before.get(key) ?? problem);
    }
    this.#problems = now;
    const note = (event: 'Problem' | 'ProblemSolved', { kind, family, text }: Problem) =>
      journal.note({ event, ...(family && { family }), text: `${kind}: ${text}` });
    for (const [key, problem] of now) if (!before.has(key)) note('Problem', problem);
    for (const [key, problem] of before) if (!now.has(key)) note('ProblemSolved', problem);
  }
}
