import type { ServicePlan } from '../../plan/service-plan.ts';
import { Claims } from '../claims.ts';
import { compilePlan, type Fragment, type WantedServer } from './compile.ts';
import { type InterfaceFacts, noFacts } from './interface-facts.ts';
import { restoreInput } from './rules.ts';
import { boundAddressSet, type IpsetName, setNames } from './sets.ts';
import type { IpvsSettings } from './settings.ts';

/** The virtual servers, addresses and set entries to compare. */
export interface Scope {
  readonly servers: Iterable<string>;
  readonly addresses: Iterable<string>;
  readonly entries: Iterable<readonly [IpsetName, Iterable<string>]>;
}

/** What a change of plans affects: all that a partial sync compares. */
export class Touched implements Scope {
  readonly servers = new Set<string>();
  readonly addresses = new Set<string>();
  readonly entries = new Map<IpsetName, Set<string>>();

  entry(set: IpsetName, entry: string): void {
    const entries = this.entries.get(set);
    if (entries) entries.add(entry);
    else this.entries.set(set, new Set([entry]));
  }
}

interface Placed {
  readonly plan: ServicePlan;
  readonly facts: InterfaceFacts;
  readonly fragment: Fragment;
}

/**
 * What the kernel should hold in one family: the fragments of all service ports, and who wants what is shared. No two
 * plans have the same frontend, but a node port at an address of the node may be the same virtual server as an external
 * address of another service port, which then has it. Differs from upstream (settled-ownership), which leaves it to
 * chance.
 */
export class DesiredState {
  readonly settings: IpvsSettings;
  readonly #placed = new Map<string, Placed>();
  readonly #servers = new Claims();
  readonly #entries: Readonly<Record<IpsetName, Claims>>;
  readonly #outFilter = new Claims();
  #facts = noFacts;
  /** The text of rules, until something changes that goes into it. */
  #rules: string | undefined;

  constructor(settings: IpvsSettings) {
    this.settings = settings;
    this.#entries = Object.fromEntries(setNames.map((set) => [set, new Claims()])) as Record<
      IpsetName,
      Claims
    >;
  }

  /** Takes effect as plans are placed from now on. */
  setFacts(facts: InterfaceFacts): void {
    this.#facts = facts;
  }

  /** Service port keys that are placed. */
  keys(): Iterable<string> {
    return this.#placed.keys();
  }

  /** Puts the plan in place of what the service port wanted before; without a plan it wants nothing any more. */
  place(key: string, plan: ServicePlan | undefined, touched?: Touched): void {
    const before = this.#placed.get(key);
    const isCurrent = before?.plan === plan && (!before || before.facts === this.#facts);
    const after = plan && !isCurrent ? compilePlan(plan, this.settings, this.#facts) : before?.fragment;
    for (const fragment of [before?.fragment, after]) if (touched && fragment) touch(touched, fragment);
    if (isCurrent) return;
    if (before) this.#each(key, before.fragment, 'release');
    if (plan && after) this.#each(key, after, 'claim');
    if (plan && after) this.#placed.set(key, { plan, facts: this.#facts, fragment: after });
    else this.#placed.delete(key);
  }

  /** The wanted virtual server and the service port that owns it. */
  server(serverKey: string): (WantedServer & { readonly owner: string }) | undefined {
    const owner = this.#servers.first(serverKey)?.slice(1);
    const wanted = owner === undefined ? undefined : this.#placed.get(owner)?.fragment.servers.get(serverKey);
    return wanted && owner !== undefined ? { ...wanted, owner } : undefined;
  }

  wantsServer(serverKey: string): boolean {
    return this.#servers.has(serverKey);
  }

  serverKeys(): Iterable<string> {
    return this.#servers.things();
  }

  wantsAddress(address: string): boolean {
    return this.#entries[boundAddressSet].has(address);
  }

  addresses(): Iterable<string> {
    return this.#entries[boundAddressSet].things();
  }

  wantsEntry(set: IpsetName, entry: string): boolean {
    return this.#entries[set].has(entry);
  }

  entries(set: IpsetName): Iterable<string> {
    return this.#entries[set].things();
  }

  /** The service ports that want an entry. */
  entryOwners(set: IpsetName, entry: string): readonly string[] {
    return this.#entries[set].of(entry);
  }

  /** Input for iptables-restore. */
  rules(): string {
    this.#rules ??= restoreInput(
      this.settings,
      (set) => this.#entries[set].size > 0,
      [...this.#outFilter.things()].sort(),
    );
    return this.#rules;
  }

  #each(key: string, fragment: Fragment, action: 'claim' | 'release'): void {
    for (const [serverKey, { isNodePort }] of fragment.servers) {
      this.#servers[action](serverKey, `${isNodePort ? 1 : 0}${key}`);
    }
    for (const { set, entry } of fragment.entries) this.#change(this.#entries[set], entry, key, action);
    for (const address of fragment.addresses) {
      this.#change(this.#entries[boundAddressSet], address, key, action);
    }
    for (const rule of fragment.outFilter) this.#outFilter[action](rule, key);
    if (fragment.outFilter.length > 0) this.#rules = undefined;
  }

  /** The rules depend only on whether a set is empty. */
  #change(claims: Claims, thing: string, key: string, action: 'claim' | 'release'): void {
    const wasEmpty = claims.size === 0;
    claims[action](thing, key);
    if (wasEmpty !== (claims.size === 0)) this.#rules = undefined;
  }
}

function touch(touched: Touched, fragment: Fragment): void {
  for (const key of fragment.servers.keys()) touched.servers.add(key);
  for (const { set, entry } of fragment.entries) touched.entry(set, entry);
  for (const address of fragment.addresses) {
    touched.addresses.add(address);
    touched.entry(boundAddressSet, address);
  }
}
