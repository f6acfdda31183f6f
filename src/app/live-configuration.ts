import { type ConfigChange, configChange, type LivePart, liveParts } from '../config/live-fields.ts';
import type { ConfigText, Verdict } from '../config/watch.ts';
import type { Journalist } from '../inspect/journal.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { GenerationStatus, LastConfigChange } from '../model/config-file-status.ts';
import type { Logger } from '../obs/log.ts';
import type { Completed } from './complete.ts';
import type { Start } from './start.ts';

/** Neither a new configuration nor the former one works. */
export class LostConfigurationError extends Error {}

/**
 * Takes up a configuration in one part of the program. When it throws, that part works as with `from`, except after a
 * LostConfigurationError.
 */
export type TakeUp = (to: Start, from: Start) => void | Promise<void>;

export interface LiveConfigurationOptions {
  readonly start: Start;
  /** Completes and validates a new file. */
  readonly complete: (file: ConfigText) => Promise<Completed>;
  /** Works out what a new configuration means on this node. Throws when it cannot work there. */
  readonly describe: (completed: Completed, from: Start) => Start;
  /** Undoes what `describe` did, whether it threw or not. */
  readonly undescribe: (from: Start) => void;
  /** Whether connections of clients go through this process. */
  readonly holdsConnections: (start: Start) => boolean;
  readonly takeUp: Readonly<Record<LivePart, TakeUp>>;
  readonly journal: Journalist;
  /** A change was rejected. */
  readonly onRejected: (note: string) => void;
  /** A change needs a restart: the program must end. */
  readonly onRestart: () => void;
  /** Neither the new configuration nor the former one works: the program must end. */
  readonly onLost: (error: unknown) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The configuration in use. A changed file becomes the next generation while the program runs: every part that it
 * concerns takes it up, one after the other. When one cannot, those before it go back to the former generation.
 */
export class LiveConfiguration {
  readonly #options: LiveConfigurationOptions;
  #start: Start;
  #status: GenerationStatus;

  constructor(options: LiveConfigurationOptions) {
    this.#options = options;
    this.#start = options.start;
    this.#status = { generation: 1, since: options.clock.now() };
  }

  /** This node with the configuration in use. */
  get start(): Start {
    return this.#start;
  }

  get status(): GenerationStatus {
    return this.#status;
  }

  /** Puts a changed file into use. To be called again only after the verdict. */
  async change(file: ConfigText): Promise<Verdict> {
    const { complete, holdsConnections, logger } = this.#options;
    const from = this.#start;
    let fields: readonly string[] = [];
    try {
      const completed = await complete(file);
      const change = configChange(from.completed.config, completed.config, holdsConnections(from));
      fields = change.fields;
      if (change.restart.length > 0) return this.#needsRestart(change.restart);
      this.#start = await this.#takeUp(completed, from, change.parts);
    } catch (error) {
      if (error instanceof LostConfigurationError) this.#options.onLost(error);
      return this.#rejected(error, fields);
    }
    const generation = this.#status.generation + 1;
    this.#status = { generation, since: this.#options.clock.now() };
    this.#note({ outcome: 'Applied', fields });
    logger.info('Configuration changed', { generation, fields });
    this.#write(`generation ${generation} is in use; changed: ${fields.join(', ') || 'nothing in use'}`);
    return { state: 'InUse' };
  }

  /** Resolves to this node with the new configuration. When it rejects, the former one is in use in every part. */
  async #takeUp(completed: Completed, from: Start, parts: ConfigChange['parts']): Promise<Start> {
    const { describe, undescribe, takeUp } = this.#options;
    const done: LivePart[] = [];
    try {
      const to = describe(completed, from);
      for (const part of liveParts) {
        if (!parts.has(part)) continue;
        await takeUp[part](to, from);
        done.push(part);
      }
      return to;
    } catch (error) {
      undescribe(from);
      for (const part of done.toReversed()) await takeUp[part](from, from);
      throw error;
    }
  }

  #needsRestart(restart: ConfigChange['restart']): Verdict {
    const { logger, onRestart } = this.#options;
    const reason = restart.map(({ field, reason: why }) => `${field}: ${why}`).join('; ');
    const fields = restart.map(({ field }) => field);
    logger.info('Configuration change needs a restart', { fields, reason });
    this.#write(`the change needs a restart: ${reason}`);
    this.#note({ outcome: 'RestartNeeded', fields, reason });
    onRestart();
    return { state: 'Changed', reason };
  }

  #rejected(error: unknown, fields: readonly string[]): Verdict {
    const { logger, onRejected } = this.#options;
    const reason = messageOf(error);
    const { generation } = this.#status;
    logger.error(error, 'Configuration rejected, keeping the one in use', { generation, fields });
    this.#write(`the change of ${fields.join(', ')} was rejected: ${reason}`);
    onRejected(`Configuration rejected, generation ${generation} stays in use: ${reason}`);
    this.#note({ outcome: 'Rejected', fields, reason });
    return { state: 'Rejected', reason };
  }

  #write(text: string): void {
    this.#options.journal.note({ event: 'Configuration', text });
  }

  #note(change: Omit<LastConfigChange, 'at'>): void {
    this.#status = { ...this.#status, lastChange: { at: this.#options.clock.now(), ...change } };
  }
}
