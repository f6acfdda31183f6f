import assert from 'node:assert/strict';
import type { DiffReport, ServiceList, StatusReport } from '../../src/inspect/api.ts';
import type { Family } from '../../src/model/ip.ts';
import type { ApiServer } from '../cluster/apiserver/server.ts';
import { paced } from '../cluster/lab/pace.ts';
import { eventually, type Patience } from '../eventually.ts';
import { inspect, sumOfSamples } from '../program/served-pages.ts';
import { Site, type StartedProxy } from '../program/started.ts';
import { type AddressBook, addressBooks } from './address-book.ts';
import { type Landscape, podDevice, podDevicePrefix } from './landscape.ts';
import { runInNode } from './node-commands.ts';
import {
  maxMarker,
  maxServices,
  type NodeState,
  type NumberedService,
  namespace,
  nodeObject,
  serviceCIDRObject,
  serviceName,
  serviceObject,
  sliceObjects,
  thisNode,
} from './objects.ts';
import type { ServiceSpec, Setting } from './story.ts';

/** An address that is not served yet often gives no answer, so the first probes are short. */
const PROBE_MS = paced(50);
/** Each failed probe makes the next a bit longer, so that a slow machine does not miss every answer. */
const PROBE_GROWTH = 1.1;
const LONGEST_PROBE_MS = paced(5_000);
const PROBE_PAUSE_MS = 5;

type Command = readonly [string, ...string[]];

/** Restores empty tables: `-F` and then `-X` would let a repair happen in between. */
const noRules = ['filter', 'nat', 'mangle'].map((table) => `*${table}\\nCOMMIT\\n`).join('');
const flushIptables = ['iptables', 'ip6tables'].map(
  (program): Command => ['sh', '-c', `printf '${noRules}' | ${program}-restore -w 5`],
);

const flushCommands: Readonly<Record<string, readonly Command[]>> = {
  nftables: [['nft', 'flush', 'ruleset']],
  userspace: [['nft', 'flush', 'ruleset']],
  iptables: flushIptables,
  ipvs: [...flushIptables, ['ipvsadm', '-C']],
};

/** A cluster with these families, as seen by the program that runs on its node n1. */
export class Cluster {
  readonly families: readonly Family[];
  readonly landscape: Landscape;
  readonly mode: string;
  readonly #site: Site;
  #program: StartedProxy | undefined;
  #setting: Setting = {};
  #services = 0;
  /** Markers have no node ports, so their numbers may be higher than those of other services. */
  #markers = maxServices;
  #lastMarker = '';
  #node: NodeState = {};
  #wiped = false;

  static async open(mode: string, families: readonly Family[], landscape: Landscape): Promise<Cluster> {
    return new Cluster(mode, families, landscape, await Site.open());
  }

  private constructor(mode: string, families: readonly Family[], landscape: Landscape, site: Site) {
    this.mode = mode;
    this.families = families;
    this.landscape = landscape;
    this.#site = site;
  }

  get api(): ApiServer {
    return this.#site.api;
  }

  get books(): AddressBook[] {
    return this.families.map((family) => addressBooks[family]);
  }

  get program(): StartedProxy {
    assert.ok(this.#program, 'no program runs');
    return this.#program;
  }

  /** Starts the program and waits until it does its work. */
  async start(setting: Setting = {}): Promise<void> {
    this.#setting = setting;
    this.#wiped = false;
    this.prepare(setting);
    this.#program = await this.#site.start(this.writeConfig(setting), setting.flags);
    await this.settled();
  }

  /** Creates the objects that the program needs at its start: the Node and the ServiceCIDRs. */
  prepare(setting: Setting = {}): void {
    const { api } = this;
    this.#putNode();
    if (setting.serviceCIDRs === 'none') api.delete('serviceCIDRs', '', 'kubernetes');
    else api.put('serviceCIDRs', serviceCIDRObject(this.families));
  }

  /** Kills the program. Its rules stay in the kernel. */
  async stop(): Promise<void> {
    await this.#site.stopAll();
    this.#program = undefined;
  }

  /** Kills the program and starts it again with the same setting. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start(this.#setting);
  }

  async close(): Promise<void> {
    await this.#site.close();
  }

  writeConfig(setting: Setting = {}): string {
    return this.#site.writeConfig(configOf(this.mode, setting, this.books));
  }

  /** Numbers a service; no other service has the same number. */
  number(spec: ServiceSpec): NumberedService {
    assert.ok(++this.#services <= maxServices, 'no addresses are left for another service');
    return { n: this.#services, spec };
  }

  put(service: NumberedService): void {
    const families = service.spec.families ?? this.families;
    this.api.put('services', serviceObject(service, families));
    for (const slice of sliceObjects(service, families)) this.api.put('endpointSlices', slice);
  }

  remove(service: NumberedService): void {
    this.api.delete('services', namespace, serviceName(service.n));
    this.removeSlices(service);
  }

  removeSlices(service: NumberedService, families = this.families): void {
    for (const { metadata } of sliceObjects(service, families)) {
      this.api.delete('endpointSlices', namespace, metadata.name);
    }
  }

  /** Puts the node into another zone, or gives it another address, until this is called again. */
  changeNode(state: NodeState): void {
    this.#node = { ...this.#node, ...state };
    this.#putNode();
  }

  /** Whether the rules of the running program were flushed. */
  get wiped(): boolean {
    return this.#wiped;
  }

  /** Flushes all rules, as an administrator may do. */
  async wipe(): Promise<void> {
    const commands = flushCommands[this.mode];
    assert.ok(commands, `no way to flush the rules of ${this.mode} mode`);
    this.#wiped = true;
    for (const [command, ...args] of commands) await runInNode(command, ...args);
  }

  /** The sum of a metric's samples, or of those with these labels (in the order of the page); 0 when there are none. */
  metric(name: string, labels = ''): Promise<number> {
    return sumOfSamples(`${name}{${labels}`, `${name} `);
  }

  /** Waits until `holds` returns true; the error of a time-out contains the program's log. */
  eventually(what: string, holds: () => Promise<boolean>, patience: Patience = {}): Promise<void> {
    return eventually(what, holds, { onTimeout: () => this.#program?.stderr, ...patience });
  }

  /** The path of a file in the program's directory. */
  path(name: string): string {
    return this.#site.path(name);
  }

  /**
   * Waits until all changes so far are in effect. It creates one more service: services and slices arrive in order, so
   * that service works only after all changes before it.
   */
  async settled(patience: Patience = {}): Promise<void> {
    assert.ok(++this.#markers <= maxMarker, 'no addresses are left for another marker');
    const marker = { n: this.#markers, spec: { endpoints: ['B' as const] } };
    this.#lastMarker = serviceName(marker.n);
    this.put(marker);
    let ended: readonly number[] | undefined;
    try {
      await Promise.all(this.books.map((book) => this.#reached(book.service(marker.n).clusterIP, patience)));
      // ipvs mode adds new servers before it removes old ones.
      if (this.mode === 'ipvs') ended = await this.#syncs();
    } finally {
      this.remove(marker);
    }
    if (ended) await this.#moreSyncsThan(ended);
  }

  /**
   * Waits until the kernel holds what the program wants and no change is pending. After `settled()` one is pending: the
   * deletion of the service that it created.
   */
  async quiet(patience: Patience = {}): Promise<void> {
    const isQuiet = async () => {
      const { items } = await inspect<ServiceList>('services');
      if (items.some(({ name }) => name === this.#lastMarker)) return false;
      const { families } = await inspect<DiffReport>('diff');
      return families.every(({ settled, differences }) => settled && differences === 0);
    };
    await this.eventually('nothing is left to do', isQuiet, { everyMs: PROBE_PAUSE_MS, ...patience });
  }

  status(): Promise<StatusReport> {
    return inspect<StatusReport>('status');
  }

  /** The frontends of a service that another service owns, with the owner, as the program reports them. */
  async lostBy(service: NumberedService): Promise<string[]> {
    const { items } = await inspect<ServiceList>('services');
    const own = items.filter(({ name }) => name === serviceName(service.n));
    return own.flatMap(({ lost = [] }) => lost.map(({ frontend, owner }) => `${frontend} → ${owner}`));
  }

  #putNode(): void {
    const families = this.#setting.nodeFamilies ?? this.families;
    this.api.put('nodes', nodeObject(families, this.families, this.#node));
  }

  /** Waits until one more sync has ended in every family. */
  async #moreSyncsThan(ended: readonly number[]): Promise<void> {
    const haveMore = async () => (await this.#syncs()).every((syncs, i) => syncs > (ended[i] ?? 0));
    await this.eventually('the end of a sync', haveMore, { everyMs: PROBE_PAUSE_MS });
  }

  /** How many syncs have ended, by family. */
  async #syncs(): Promise<readonly number[]> {
    const { families } = await this.status();
    // The program may also sync a family that the cluster does not have.
    return families.filter(({ family }) => this.families.includes(family)).map(({ syncs }) => syncs);
  }

  async #reached(address: string, patience: Patience): Promise<void> {
    const pod = this.landscape.host('pod');
    let timeoutMs = PROBE_MS;
    const isReached = async () => {
      const outcome = await pod.ask({ address, port: 80, timeoutMs });
      if (outcome.kind === 'silence') timeoutMs = Math.min(timeoutMs * PROBE_GROWTH, LONGEST_PROBE_MS);
      assert.ok(outcome.kind === 'answered' && outcome.by === 'B', `it became ${JSON.stringify(outcome)}`);
      return true;
    };
    await this.eventually('a service put last works', isReached, { everyMs: PROBE_PAUSE_MS, ...patience });
  }
}

function configOf(mode: string, setting: Setting, books: readonly AddressBook[]): Record<string, unknown> {
  const { nodePortAddresses, gates } = setting;
  return {
    mode,
    hostnameOverride: thisNode,
    ...detectLocal(setting, books),
    ...nodePorts(mode, nodePortAddresses),
    ...(gates && { featureGates: gates }),
    // Long, so that UDP flows do not expire within a story on a busy machine.
    ...(mode === 'userspace' && { udpIdleTimeout: setting.udpIdleTimeout ?? '30s' }),
    ...sections(mode, setting),
  };
}

/** Userspace mode has its settings in the section `iptables`, and ipvs mode those for masquerading. */
function sections(mode: string, setting: Setting): Record<string, unknown> {
  const { masqueradeAll = false, masqueradeBit, ipvs } = setting;
  const periods = { syncPeriod: '30s', minSyncPeriod: '5ms' };
  const masquerading = { masqueradeAll, ...(masqueradeBit !== undefined && { masqueradeBit }) };
  if (mode === 'ipvs') return { ipvs: { ...periods, ...ipvs }, iptables: masquerading };
  return { [mode === 'userspace' ? 'iptables' : mode]: { ...periods, ...masquerading } };
}

/** By default userspace mode serves node ports at all addresses, as its predecessor did. */
function nodePorts(mode: string, nodePortAddresses: Setting['nodePortAddresses']): Record<string, unknown> {
  if (nodePortAddresses) return { nodePortAddresses };
  return mode === 'userspace' ? { nodePortAddresses: ['primary'] } : {};
}

function detectLocal({ detectLocal }: Setting, books: readonly AddressBook[]): Record<string, unknown> {
  switch (detectLocal) {
    case 'none':
      return { detectLocalMode: 'ClusterCIDR' };
    case 'ClusterCIDR':
      return { detectLocalMode: 'ClusterCIDR', clusterCIDR: books.map((book) => book.clusterCIDR).join(',') };
    case 'BridgeInterface':
      return { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: podDevice } };
    case 'InterfaceNamePrefix':
      return {
        detectLocalMode: 'InterfaceNamePrefix',
        detectLocal: { interfaceNamePrefix: podDevicePrefix },
      };
    default:
      return { detectLocalMode: 'NodeCIDR' };
  }
}
