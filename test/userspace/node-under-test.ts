import { nodePortSource } from '../../src/backends/address-watch.ts';
import type { Backend } from '../../src/backends/backend.ts';
import { SyncEngine } from '../../src/backends/engine.ts';
import { UserspaceInspection } from '../../src/backends/userspace/inspection/userspace-inspection.ts';
import { PortalDriver } from '../../src/backends/userspace/portal-driver.ts';
import { ProxySockets } from '../../src/backends/userspace/proxy-sockets.ts';
import type { UserspaceSettings } from '../../src/backends/userspace/settings.ts';
import type { NodeForwarder } from '../../src/forwarder/open.ts';
import { openNodeForwarder } from '../../src/forwarder/open.ts';
import { PortPool } from '../../src/forwarder/port-pool.ts';
import { type KernelInterfaces, openKernel } from '../../src/kernel/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Family } from '../../src/model/ip.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import { silentLogger } from '../../src/obs/log.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { sh } from '../cluster/lab/namespace.ts';
import { plansByKey } from '../cluster/plans.ts';
import { repairParts } from '../repair-parts.ts';
import type { Cleanups } from './peers.ts';

export const nodeIPs: Readonly<Record<Family, string>> = { IPv4: '192.0.2.10', IPv6: '2001:db8::10' };

/** Addresses of the node's pods. */
const podCIDRs: Readonly<Record<Family, string>> = { IPv4: '10.244.1.0/24', IPv6: 'fd00:244:1::/64' };

/** Another address of the node. */
export const strangerIP = '203.0.114.10';

/** Sets the node's addresses, and a route to service addresses through an interface that leads nowhere. */
export function prepareNode(): void {
  const { IPv4, IPv6 } = nodeIPs;
  sh(
    `ip addr add ${IPv4}/32 dev lo; ip addr add ${strangerIP}/32 dev lo; ip addr add ${IPv6}/128 dev lo nodad`,
  );
  sh('ip link add out type veth peer name nowhere; ip link set out up; ip link set nowhere up');
  for (const network of ['10.96.0.0/16', '198.51.100.0/24'])
    sh(`ip route add ${network} dev out src ${IPv4}`);
  sh(`ip -6 route add fd00:96::/112 dev out src ${IPv6}`);
}

export type Variant = Partial<Omit<UserspaceSettings, 'nodePortAddresses'>> & {
  readonly nodePortAddresses?: readonly string[];
};

/** A node in this namespace with userspace mode with portals in one family. */
export class UserspaceNode {
  readonly backend: Backend;
  readonly node: NodeForwarder;
  readonly kernel: KernelInterfaces;
  readonly settings: UserspaceSettings;
  /** Inspects this node through the backend's own sockets. */
  readonly inspection: UserspaceInspection;
  repairs = 0;
  /** Set to false to inspect damage. */
  mayRepair = true;
  #plans = new Map<string, ServicePlan>();
  #idle: Promise<unknown> = Promise.resolve();

  static async open(cleanups: Cleanups, variant: Variant = {}): Promise<UserspaceNode> {
    const kernel = await openKernel(systemClock);
    const node = await openNodeForwarder({
      dialTimeouts: [250, 500, 1_000, 2_000],
      udpIdleMs: 60_000,
      clock: systemClock,
      report: () => {},
    });
    const made = new UserspaceNode(kernel, node, variant);
    cleanups.add(() => node.forwarder.close());
    cleanups.add(() => made.backend.close());
    return made;
  }

  private constructor(kernel: KernelInterfaces, node: NodeForwarder, variant: Variant) {
    const settings = settingsOf(variant);
    this.settings = settings;
    const { portRange, choice } = settings;
    const pool = new PortPool(portRange, Math.random);
    this.kernel = kernel;
    this.node = node;
    const common = { logger: silentLogger, clock: systemClock };
    const driver = new PortalDriver({
      ...common,
      settings,
      kernel,
      sockets: new ProxySockets({ forwarder: node.forwarder, pool, choice }),
      claim: node.claim,
      onClose: () => kernel.close(),
    });
    const source = kernel.addresses;
    this.backend = new SyncEngine({
      ...common,
      family: settings.family,
      driver,
      addresses: { source, ...nodePortSource(source, settings.nodePortAddresses) },
      flows: driver.flows,
      retryMs: 60_000,
      ...repairParts(common.clock),
      requestSync: () => void this.#repair(),
    });
    this.inspection = new UserspaceInspection({
      settings,
      kernel,
      running: () => ({ driver, forwarder: node.forwarder }),
    });
  }

  /** Syncs so that these are the only plans; returns the refusals as text by key. */
  async program(...plans: readonly ServicePlan[]): Promise<Record<string, string>> {
    const wanted = plansByKey(...plans);
    const changed = new Set([...this.#plans.keys(), ...wanted.keys()]);
    const isFirst = this.#plans.size === 0;
    this.#plans = wanted;
    return this.#sync(isFirst ? 'all' : changed);
  }

  /** The same with a full sync, as after a failure. */
  async full(...plans: readonly ServicePlan[]): Promise<Record<string, string>> {
    this.#plans = plansByKey(...plans);
    return this.#sync('all');
  }

  /** Returns what a sync of these plans would change, one line each. */
  async differences(...plans: readonly ServicePlan[]): Promise<string[]> {
    const request = { plans: plansByKey(...plans), serviceCIDRs: [], totalEndpoints: 0 };
    const differences = await this.inspection.compare(request);
    return differences.map(
      ({ service = '-', kind, object, wanted, found }) =>
        `${service} ${kind} ${object}: ${found ?? 'nothing'} -> ${wanted ?? 'nothing'}`,
    );
  }

  async #repair(): Promise<void> {
    if (!this.mayRepair) return;
    this.repairs++;
    await this.#sync('all');
  }

  /** One sync after the other, as the proxier does. */
  async #sync(changed: ReadonlySet<string> | 'all'): Promise<Record<string, string>> {
    const request = { plans: this.#plans, changed, serviceCIDRs: [], totalEndpoints: 0 };
    const sync = this.#idle.then(() => this.backend.sync(request));
    this.#idle = sync.catch(() => undefined);
    const { refused } = await sync;
    return Object.fromEntries(refused.map(({ key, error }) => [key, error.message]));
  }
}

function settingsOf(variant: Variant): UserspaceSettings {
  const { nodePortAddresses: addresses = [], family = 'IPv4', ...rest } = variant;
  return {
    family,
    hostIP: nodeIPs[family],
    nodeIP: nodeIPs[family],
    localDetector: { kind: 'cidr', cidr: podCIDRs[family] },
    portRange: undefined,
    choice: 'round-robin',
    keepsSource: true,
    masqueradeAll: false,
    ...rest,
    nodePortAddresses: nodePortAddresses(family, addresses),
  };
}
