import type { ServiceReport, StatusReport } from '../inspect/api.ts';
import type { TrafficReport } from '../inspect/traffic-api.ts';
import { messageOf } from '../lib/thrown.ts';
import { apiAddress, ask, askList } from './api.ts';
import { type Rate, Rates } from './rates.ts';
import { repeat } from './repeat.ts';
import { faultyObjects, rowOf, type ServiceRow } from './service-row.ts';

/** What the whole page knows of the proxy. */
export interface Live {
  readonly status: StatusReport | undefined;
  /** Sorted by name. */
  readonly rows: readonly ServiceRow[] | undefined;
  /** By the key of a row; undefined when the proxy has no figures. */
  readonly rates: ReadonlyMap<string, Rate> | undefined;
  /** What the rates do not count, and why; '' when they count everything. */
  readonly ratesNote: string;
  /** When the proxy last answered, in milliseconds since the epoch. */
  readonly answeredAt: number | undefined;
  /** Why it does not answer now. */
  readonly failure: string | undefined;
}

export const nothingYet: Live = {
  status: undefined,
  rows: undefined,
  rates: undefined,
  ratesNote: '',
  answeredAt: undefined,
  failure: undefined,
};

const everyMs = 2_000;
/** A list of 50,000 Services costs the proxy a second: it takes at most this part of the time. */
const listShare = 1 / 10;

/** Asks the proxy again and again, and tells what it knows. Returns a function that ends it. */
export function follow(tell: (live: Live) => void): () => void {
  return new Follower(tell).start();
}

class Follower {
  readonly #tell: (live: Live) => void;
  #live = nothingYet;
  /** Equal as long as the Services are the same. */
  #version = '';
  #nextListAt = 0;
  #rates = new Rates();
  /** The start of the proxy whose list of questions is known, and whether it has figures. */
  #indexOf = '';
  #hasTraffic = false;

  constructor(tell: (live: Live) => void) {
    this.#tell = tell;
  }

  start(): () => void {
    return repeat(everyMs, async (signal) => {
      try {
        const status = await ask<StatusReport>('status', {}, signal);
        this.#know({ status, answeredAt: Date.now(), failure: undefined });
        await this.#lookAtServices(status, signal);
        await this.#lookAtTraffic(status, signal);
      } catch (error) {
        if (!signal.aborted) this.#know({ failure: messageOf(error) });
      }
    });
  }

  #know(news: Partial<Live>): void {
    this.#live = { ...this.#live, ...news };
    this.#tell(this.#live);
  }

  async #lookAtServices(status: StatusReport, signal: AbortSignal): Promise<void> {
    const version = versionOf(status);
    const begin = performance.now();
    if (version === this.#version || begin < this.#nextListAt) return;
    const { items } = await askList<ServiceReport>('services', {}, signal);
    const faulty = faultyObjects(status.setAside);
    const rows = items.map((item) => rowOf(item, faulty));
    rows.sort((a, b) => (a.key < b.key ? -1 : 1));
    this.#version = version;
    this.#nextListAt = performance.now() + (performance.now() - begin) / listShare;
    this.#know({ rows });
  }

  async #lookAtTraffic({ startTime }: StatusReport, signal: AbortSignal): Promise<void> {
    if (this.#indexOf !== startTime) {
      const { paths } = await ask<{ paths: readonly string[] }>('', {}, signal);
      this.#hasTraffic = paths.includes(apiAddress('traffic'));
      this.#indexOf = startTime;
    }
    if (!this.#hasTraffic) return this.#know({ rates: undefined, ratesNote: '' });
    const report = await ask<TrafficReport>('traffic', { by: 'service' }, signal);
    this.#know({ rates: this.#rates.update(report), ratesNote: noteOf(report) });
  }
}

function noteOf({ families, lostEvents }: TrafficReport): string {
  const reasons = new Set(families.flatMap(({ error, warning }) => error ?? warning ?? []));
  const lost = lostEvents > 0 ? [`the kernel could not report ${lostEvents} openings and ends`] : [];
  return [...reasons, ...lost].join('; ');
}

/** Changes with every sync, and with a restart. */
function versionOf({ startTime, families, setAside }: StatusReport): string {
  return JSON.stringify([
    startTime,
    families.map(({ syncs, servicePorts }) => [syncs, servicePorts]),
    setAside,
  ]);
}
