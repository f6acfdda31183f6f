import type { AcctClient } from '../../kernel/acct/client.ts';
import { isNetlinkError } from '../../kernel/netlink/error.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Logger } from '../../obs/log.ts';
import type { Sample } from '../../obs/metrics.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { Counters } from './tables.ts';

/** The metrics that show them. */
export type CounterMetrics = Pick<ProxyMetrics, 'ctStateInvalidDropped' | 'localhostNodePortsAccepted'>;

const invalidDropped = 'ct_state_invalid_dropped_pkts';
const localhostAccepted = 'localhost_nps_accepted_pkts';
/** The counter whose lookup shows whether the kernel supports counters at all. */
const probe = 'IMayExist';

/** The packet counters that rules name. They belong to neither family and are never removed. */
export class PacketCounters {
  readonly #client: AcctClient;

  private constructor(client: AcctClient) {
    this.#client = client;
  }

  /** Undefined when the kernel has no nfacct counters: rules then do not name them. */
  static async open(client: AcctClient, logger: Logger): Promise<PacketCounters | undefined> {
    try {
      await client.get(probe);
      return new PacketCounters(client);
    } catch (error) {
      client.close();
      logger.info('This kernel has no nfacct counters; packets dropped as invalid are not counted', {
        reason: messageOf(error),
      });
      return undefined;
    }
  }

  /** Creates missing counters; resolves to those that exist. */
  async ensure(logger: Logger): Promise<Counters> {
    return {
      invalidDropped: await this.#ensure(invalidDropped, logger),
      localhostAccepted: await this.#ensure(localhostAccepted, logger),
    };
  }

  /** Resolves to the counters that exist; creates none. */
  async present(): Promise<Counters> {
    const isThere = async (name: string) => (await this.#client.get(name)) !== undefined;
    return {
      invalidDropped: await isThere(invalidDropped),
      localhostAccepted: await isThere(localhostAccepted),
    };
  }

  /** Makes every scrape of the metrics read the counters. */
  publish(metrics: CounterMetrics): void {
    metrics.ctStateInvalidDropped.readFrom(() => this.#read(invalidDropped));
    metrics.localhostNodePortsAccepted.readFrom(() => this.#read(localhostAccepted));
  }

  close(): void {
    this.#client.close();
  }

  async #ensure(name: string, logger: Logger): Promise<boolean> {
    try {
      if (!(await this.#client.get(name))) await this.#client.create(name);
      return true;
    } catch (error) {
      // The other family created it meanwhile, at the first sync on a node.
      if (isNetlinkError(error, 'EBUSY')) return true;
      logger.error(error, 'No packet counter', { counter: name });
      return false;
    }
  }

  async #read(name: string): Promise<Sample[]> {
    const counter = await this.#client.get(name);
    return counter ? [{ labels: {}, value: Number(counter.packets) }] : [];
  }
}
