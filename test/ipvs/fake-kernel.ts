import type { IpvsKernel, OperationFailure } from '../../src/backends/ipvs/kernel.ts';
import type { Jump } from '../../src/backends/jumps.ts';
import { canonicalEntry } from '../../src/kernel/ipset/entry.ts';
import type { SetDefinition } from '../../src/kernel/ipset/objects.ts';
import {
  type ForeignVirtualServer,
  formatRealServer,
  formatVirtualServer,
  type IpvsOperation,
  type RealServer,
  type VirtualServer,
  type VirtualServerKey,
} from '../../src/kernel/ipvs/objects.ts';
import { NetlinkError } from '../../src/kernel/netlink/error.ts';
import { asError } from '../../src/lib/thrown.ts';

const EPERM = 1;
const ENOENT = 2;
const ESRCH = 3;
const EEXIST = 17;

interface FakeReal extends RealServer {
  active: number;
  inactive: number;
}

interface FakeSet {
  readonly definition: SetDefinition;
  readonly entries: Set<string>;
}

/** A kernel in memory that refuses what the real one refuses, and what `refuse` matches. */
export class FakeKernel {
  readonly virtual = new Map<string, { server: VirtualServer; reals: Map<string, FakeReal> }>();
  readonly foreign: ForeignVirtualServer[] = [];
  readonly ipsets = new Map<string, FakeSet>();
  readonly chains = new Set<string>();
  readonly jumps: string[] = [];
  /** Addresses on kube-ipvs0; undefined while there is no such device. */
  bound: Set<string> | undefined;
  onNode: string[] = ['127.0.0.1', '::1', '192.0.2.5', 'fe80::1', '2001:db8::5'];
  /** The input of the last iptables-restore. */
  rules = '';
  /** The requests as text, without lists. */
  log: string[] = [];
  /** Schedulers that the kernel does not have. */
  readonly lacking = new Set<string>();
  /** Refuses requests whose text in the log, or `list …`, matches. */
  refuse: RegExp | undefined;

  /** Returns and clears the log. */
  takeLog(): string[] {
    const taken = this.log;
    this.log = [];
    return taken;
  }

  /** Real servers of a virtual server with their weights, as `10.0.0.1:80=1`. */
  reals(serverKey: string): string[] {
    const reals = [...(this.virtual.get(serverKey)?.reals ?? [])];
    return reals.map(([key, { weight }]) => `${key}=${weight}`).sort();
  }

  entries(set: string): string[] {
    return [...(this.ipsets.get(set)?.entries ?? [])].sort();
  }

  connect(serverKey: string, realKey: string, active: number, inactive = 0): void {
    Object.assign(this.#real(serverKey, realKey), { active, inactive });
  }

  /** Changes the weight of a real server, as another program would. */
  weigh(serverKey: string, realKey: string, weight: number): void {
    Object.assign(this.#real(serverKey, realKey), { weight });
  }

  #real(serverKey: string, realKey: string): RealServer {
    const real = this.virtual.get(serverKey)?.reals.get(realKey);
    if (!real) throw new Error(`no ${realKey} in ${serverKey}`);
    return real;
  }

  /** Adds a virtual server that does not come from the backend. */
  plant(server: VirtualServer, ...reals: readonly RealServer[]): void {
    const planted = reals.map(
      (real) => [formatRealServer(real), { ...real, active: 0, inactive: 0 }] as const,
    );
    this.virtual.set(formatVirtualServer(server), { server, reals: new Map(planted) });
  }

  readonly kernel: IpvsKernel = {
    servers: {
      listServers: async () => {
        this.#check('list virtual servers');
        return [...this.foreign, ...[...this.virtual.values()].map(({ server }) => server)];
      },
      listRealServers: async (server) => this.#listReals(server),
      apply: async (operations) => {
        const failures: OperationFailure[] = [];
        for (const operation of operations) {
          const error = errorOf(() => this.#apply(operation));
          if (error) failures.push({ operation, error });
        }
        return failures;
      },
    },
    sets: {
      create: async (definition) => this.#create(definition),
      list: async (name) => {
        this.#check(`list ipset ${name}`);
        const found = this.ipsets.get(name);
        return found && { entries: [...found.entries] };
      },
      add: async (set, entries) =>
        this.#eachEntry(set.name, entries, 'add', (known, entry) => known.add(entry)),
      delete: async (set, entries) =>
        this.#eachEntry(set.name, entries, 'delete', (known, entry) => known.delete(entry)),
    },
    device: {
      ensure: async () => {
        if (this.bound) return;
        this.#check('create device');
        this.bound = new Set();
      },
      addresses: async () => {
        this.#check('list device');
        return [...this.#device(), 'fe80::9'];
      },
      bind: async (addresses) => {
        const device = this.#device();
        return this.#eachAddress(addresses, 'bind', (address) => device.add(address));
      },
      unbind: async (addresses) => {
        const device = this.#device();
        return this.#eachAddress(addresses, 'unbind', (address) => device.delete(address));
      },
    },
    iptables: {
      ensure: async ({ chains, jumps }) => {
        for (const table of ['nat', 'filter'] as const) {
          for (const chain of chains?.[table] ?? []) this.#ensureChain(`${table} ${chain}`);
        }
        return jumps.flatMap((jump) => {
          const { table, from, to } = jump;
          const error = errorOf(() => this.#ensureJump(jump));
          return error ? new Error(`jump from ${from} to ${to} in table ${table}: ${error.message}`) : [];
        });
      },
      restore: async (input) => {
        this.#check('restore');
        this.#checkRules(input);
        this.rules = input;
      },
    },
    nodeAddresses: async () => {
      this.#check('list node addresses');
      return this.onNode;
    },
  };

  #ensureChain(chain: string): void {
    if (this.chains.has(chain)) return;
    this.#check(`chain ${chain}`);
    this.chains.add(chain);
  }

  #ensureJump({ table, from, to, match }: Jump): void {
    const jump = `${table} ${from} ${to} ${match.at(-1)}`;
    if (this.jumps.includes(jump)) return;
    this.#check(`jump ${jump}`);
    if (!this.chains.has(`${table} ${to}`)) throw new Error(`no chain ${to} in ${table}`);
    this.jumps.unshift(jump);
  }

  #listReals(server: VirtualServerKey) {
    const key = formatVirtualServer(server);
    this.#check(`list real servers of ${key}`);
    return [...(this.virtual.get(key)?.reals.values() ?? [])].map(({ active, inactive, ...real }) => ({
      ...real,
      forwarding: 'masquerade' as const,
      activeConnections: active,
      inactiveConnections: inactive,
      persistentConnections: 0,
    }));
  }

  #apply(operation: IpvsOperation): void {
    const { verb, server } = operation;
    const key = formatVirtualServer(server);
    const known = this.virtual.get(key);
    if ('real' in operation) {
      const { real } = operation;
      const weight = 'weight' in real && verb !== 'delete' ? ` ${real.weight}` : '';
      this.#check(`${verb} ${formatRealServer(real)}${weight} @ ${key}`);
      if (!known) throw refusal(verb, ESRCH);
      const there = known.reals.get(formatRealServer(real));
      if (!there !== (verb === 'add')) throw refusal(verb, there ? EEXIST : ENOENT);
      if (operation.verb === 'delete') known.reals.delete(formatRealServer(real));
      else known.reals.set(formatRealServer(real), { active: 0, inactive: 0, ...there, ...operation.real });
      return;
    }
    this.#check(`${verb} ${key}`);
    if (operation.verb !== 'delete' && this.lacking.has(operation.server.scheduler)) {
      throw refusal(verb, ENOENT);
    }
    if (!known !== (verb === 'add')) throw refusal(verb, known ? EEXIST : ESRCH);
    if (operation.verb === 'delete') this.virtual.delete(key);
    else this.virtual.set(key, { reals: known?.reals ?? new Map(), server: operation.server });
  }

  #create(definition: SetDefinition): void {
    const known = this.ipsets.get(definition.name);
    if (known && JSON.stringify(known.definition) !== JSON.stringify(definition))
      throw refusal('create', EEXIST);
    if (known) return;
    this.#check(`create ipset ${definition.name}`);
    this.ipsets.set(definition.name, { definition, entries: new Set() });
  }

  #eachEntry(
    name: string,
    entries: readonly string[],
    verb: string,
    change: (known: Set<string>, entry: string) => void,
  ): { entry: string; error: Error }[] {
    const set = this.ipsets.get(name);
    if (!set) throw refusal(`${verb} entries`, ENOENT);
    return entries.flatMap((entry) => {
      const error = errorOf(() => {
        this.#check(`${verb} ${entry} @ ${name}`);
        change(set.entries, canonicalEntry(entry, set.definition.type));
      });
      return error ? [{ entry, error }] : [];
    });
  }

  #eachAddress(addresses: readonly string[], verb: string, change: (address: string) => void) {
    return addresses.flatMap((address) => {
      const error = errorOf(() => {
        this.#check(`${verb} ${address}`);
        change(address);
      });
      return error ? [{ address, error }] : [];
    });
  }

  #device(): Set<string> {
    if (!this.bound) throw refusal('device', ENOENT);
    return this.bound;
  }

  /** Fails when a rule names a chain or set that does not exist. */
  #checkRules(input: string): void {
    let table = '';
    for (const line of input.split('\n')) {
      if (line.startsWith('*')) table = line.slice(1);
      const chain = /^:(\S+) - \[0:0\]$/.exec(line)?.[1];
      if (chain !== undefined && !this.chains.has(`${table} ${chain}`)) throw new Error(`no chain ${chain}`);
      const set = /--match-set (\S+)/.exec(line)?.[1];
      if (set !== undefined && !this.ipsets.has(set)) throw new Error(`no set ${set}`);
    }
  }

  #check(words: string): void {
    if (!words.startsWith('list ')) this.log.push(words);
    if (this.refuse?.test(words)) throw refusal(words, EPERM);
  }
}

function refusal(action: string, errno: number): NetlinkError {
  return new NetlinkError(action, { errno, text: '' });
}

function errorOf(work: () => void): Error | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return asError(error);
  }
}
