import assert from 'node:assert/strict';
import type { SyncResult } from '../../src/backends/backend.ts';
import type { SyncEngine } from '../../src/backends/engine.ts';
import type { Believed } from '../../src/backends/nftables/prepare.ts';
import type { NftablesSettings } from '../../src/backends/nftables/settings.ts';
import type { NftBatch } from '../../src/kernel/nft/batch.ts';
import type { NftClient } from '../../src/kernel/nft/client.ts';
import { type KernelInterfaces, openKernel } from '../../src/kernel/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Family } from '../../src/model/ip.ts';
import type { LocalDetector } from '../../src/model/local-detector.ts';
import { expandNodePortAddresses, nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import { type Logger, silentLogger } from '../../src/obs/log.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { plansByKey } from '../cluster/plans.ts';
import { FakeClock } from '../fake-clock.ts';
import { nftablesEngine } from './engine.ts';

export const nodeIPs: Readonly<Record<Family, string>> = { IPv4: '192.0.2.10', IPv6: '2001:db8:0:1::10' };

const detectors: Readonly<Record<Family, LocalDetector>> = {
  IPv4: { kind: 'cidr', cidr: '10.244.1.0/24' },
  IPv6: { kind: 'cidr', cidr: 'fd00:244:1::/64' },
};

const serviceCIDRs: Readonly<Record<Family, readonly string[]>> = {
  IPv4: ['10.96.0.0/16'],
  IPv6: ['fd00:96::/112'],
};

export interface Variant extends Partial<Omit<NftablesSettings, 'nodePortAddresses'>> {
  /** As configured, keywords included; default `[primary]`. */
  readonly nodePortAddresses?: readonly string[];
  readonly serviceCIDRs?: readonly string[];
}

/** The node under test, in the namespace of this process: a kernel and the backend that programs it. */
export class NodeUnderTest {
  readonly kernel: KernelInterfaces;
  /** Of the backend; it moves only when a test says so. */
  readonly clock = new FakeClock();
  /** Elements added or deleted by the latest commit that had any operation. */
  elementOperations = 0;
  readonly #backends = new Map<string, SyncEngine<Believed>>();
  #plans = new Map<string, ServicePlan>();
  /** Complaints of the backend so far. */
  readonly complaints: string[] = [];
  readonly #logger: Logger = {
    ...silentLogger,
    error: (error, message) => void this.complaints.push(`${message}: ${error}`),
  };

  static async open(): Promise<NodeUnderTest> {
    return new NodeUnderTest(await openKernel(systemClock));
  }

  private constructor(kernel: KernelInterfaces) {
    this.kernel = kernel;
  }

  /** Fails when the backend logged errors that the test has not read. */
  close(): void {
    this.restart();
    this.kernel.close();
    assert.deepEqual(this.complaints, []);
  }

  /** Discards all state of the program, as a restart does. */
  restart(): void {
    for (const backend of this.#backends.values()) void backend.close();
    this.#backends.clear();
  }

  /** Returns the backend for these settings: the current one, or a new one that replaces it. */
  backend(family: Family, variant: Variant = {}): SyncEngine<Believed> {
    const key = `${family} ${JSON.stringify(variant)}`;
    const known = this.#backends.get(key);
    if (known) return known;
    this.restart();
    const settings = settingsOf(family, variant);
    const backend = nftablesEngine({
      settings,
      client: this.#observed(),
      list: () => this.kernel.addresses.list(),
      logger: this.#logger,
      clock: this.clock,
    });
    this.#backends.set(key, backend);
    return backend;
  }

  /** The kernel, with operations counted and without a watch: the backend must not repair damage that tests do. */
  #observed(): NftClient {
    const { nft } = this.kernel;
    return new Proxy(nft, {
      get: (target, property) => {
        if (property === 'subscribe') return () => ({ close() {} });
        if (property !== 'commit') {
          const member: unknown = Reflect.get(target, property, target);
          return typeof member === 'function' ? member.bind(target) : member;
        }
        return (batch: NftBatch) => {
          this.elementOperations = batch.operations.reduce(
            (sum, { elements }) => sum + (elements?.length ?? 0),
            0,
          );
          return target.commit(batch);
        };
      },
    });
  }

  /** Syncs these plans, all of one family, in place of all others. Only differences count as changes. */
  async program(
    plans: readonly ServicePlan[],
    variant: Variant = {},
    scope: 'changes' | 'all' = 'changes',
  ): Promise<SyncResult> {
    const family = plans[0]?.port.family ?? 'IPv4';
    const wanted = plansByKey(...plans);
    const changed = scope === 'all' ? scope : new Set([...this.#plans.keys(), ...wanted.keys()]);
    this.#plans = wanted;
    return this.backend(family, variant).sync({
      plans: wanted,
      changed,
      serviceCIDRs: variant.serviceCIDRs ?? serviceCIDRs[family],
      totalEndpoints: 0,
    });
  }
}

export function settingsOf(family: Family, variant: Variant = {}): NftablesSettings {
  const addresses = expandNodePortAddresses(variant.nodePortAddresses ?? ['primary'], nodeIPs);
  const { nodePortAddresses: _, serviceCIDRs: __, ...rest } = variant;
  return {
    family,
    masqueradeBit: 14,
    masqueradeAll: false,
    localDetector: detectors[family],
    nodeIP: nodeIPs[family],
    localhostNodePorts: false,
    ...rest,
    nodePortAddresses: nodePortAddresses(family, addresses),
  };
}
