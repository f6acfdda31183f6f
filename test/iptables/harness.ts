import { SyncEngine } from '../../src/backends/engine.ts';
import { IptablesDriver } from '../../src/backends/iptables/driver.ts';
import type { NodeLines } from '../../src/backends/iptables/node-lines.ts';
import type { IptablesSettings } from '../../src/backends/iptables/settings.ts';
import type { Tables } from '../../src/backends/iptables/tables.ts';
import type { Family } from '../../src/model/ip.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import { type Logger, silentLogger } from '../../src/obs/log.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { plansByKey } from '../cluster/plans.ts';
import { FakeClock } from '../fake-clock.ts';
import { repairParts } from '../repair-parts.ts';
import { FakeTables } from './fake-tables.ts';

const defaults: Readonly<Record<Family, IptablesSettings>> = {
  IPv4: {
    family: 'IPv4',
    masqueradeBit: 14,
    masqueradeAll: false,
    localDetector: { kind: 'cidr', cidr: '10.244.0.0/16' },
    nodePortAddresses: nodePortAddresses('IPv4', []),
    nodeIP: '192.168.10.5',
    localhostNodePorts: true,
    conntrackLiberal: false,
    syncPeriod: 30_000,
  },
  IPv6: {
    family: 'IPv6',
    masqueradeBit: 14,
    masqueradeAll: false,
    localDetector: { kind: 'cidr', cidr: 'fd00:244::/48' },
    nodePortAddresses: nodePortAddresses('IPv6', []),
    nodeIP: 'fd00:10::5',
    localhostNodePorts: false,
    conntrackLiberal: false,
    syncPeriod: 30_000,
  },
};

/** The settings of a node with a default configuration. */
export function settingsOf(family: Family, changes: Partial<IptablesSettings> = {}): IptablesSettings {
  return { ...defaults[family], ...changes };
}

/** A backend with the tables it writes to, and the plans it was last given. */
export class SyncHarness<T extends Tables = FakeTables> {
  readonly tables: T;
  readonly backend: SyncEngine<NodeLines>;
  readonly clock = new FakeClock();
  /** Values of metrics: `failures`, `partial failures`, `total nat`, `last filter` and so on. */
  readonly metrics = new Map<string, number>();
  /** Errors logged so far. */
  readonly complaints: string[] = [];
  interfaceAddresses: () => Promise<readonly string[]> = async () => [];
  totalEndpoints = 0;
  #plans = new Map<string, ServicePlan>();

  constructor(tables: T, settings: IptablesSettings) {
    this.tables = tables;
    const logger: Logger = {
      ...silentLogger,
      error: (error, message) => void this.complaints.push(`${message}: ${error}`),
    };
    const { clock } = this;
    const metrics = {
      iptablesRestoreFailures: this.#counter('failures'),
      iptablesPartialRestoreFailures: this.#counter('partial failures'),
      iptablesRulesTotal: this.#gauge('total'),
      iptablesRulesLast: this.#gauge('last'),
    };
    this.backend = new SyncEngine({
      family: settings.family,
      driver: new IptablesDriver({ settings, tables, metrics, logger, clock }),
      addresses: { source: { list: () => this.interfaceAddresses(), watch: () => ({ close() {} }) } },
      retryMs: 0,
      ...repairParts(clock),
      logger,
      clock,
      requestSync: () => {},
    });
  }

  /** Syncs the difference to these plans, which replace all others; returns the refused keys. */
  change(...plans: readonly ServicePlan[]): Promise<string[]> {
    const wanted = plansByKey(...plans);
    const keys = new Set([...this.#plans.keys(), ...wanted.keys()]);
    const changed = new Set([...keys].filter((key) => this.#plans.get(key) !== wanted.get(key)));
    this.#plans = wanted;
    return this.#sync(changed);
  }

  /** The same with a full sync. */
  full(...plans: readonly ServicePlan[]): Promise<string[]> {
    this.#plans = plansByKey(...plans);
    return this.again();
  }

  /** A full sync of the current plans. */
  again(): Promise<string[]> {
    return this.#sync('all');
  }

  async #sync(changed: ReadonlySet<string> | 'all'): Promise<string[]> {
    const { totalEndpoints } = this;
    const request = { plans: this.#plans, changed, serviceCIDRs: [], totalEndpoints };
    const { refused } = await this.backend.sync(request);
    return refused.map(({ key }) => key).sort();
  }

  #counter(name: string) {
    return { inc: () => void this.metrics.set(name, (this.metrics.get(name) ?? 0) + 1) };
  }

  #gauge(name: string) {
    const set = (value: number, labels: Readonly<Record<string, string>> = {}) =>
      void this.metrics.set(`${name} ${labels.table}`, value);
    return { set, add: () => {} };
  }
}

export function fakeHarness(
  family: Family = 'IPv4',
  changes: Partial<IptablesSettings> = {},
  tables = new FakeTables(),
): SyncHarness {
  return new SyncHarness(tables, settingsOf(family, changes));
}

/** The rules of one chain in restore input. */
export function rulesOf(input: string | undefined, chain: string): string[] {
  return (input ?? '').split('\n').filter((line) => line.startsWith(`-A ${chain} `));
}
