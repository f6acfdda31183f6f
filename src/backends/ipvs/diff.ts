import type { RealServer, VirtualServer } from '../../kernel/ipvs/objects.ts';
import { cidrContains, parseIP } from '../../model/ip.ts';
import type { CurrentServer, CurrentState } from './current.ts';
import type { DesiredState, Scope } from './desired.ts';
import { type IpsetName, setNames } from './sets.ts';
import type { IpvsSettings } from './settings.ts';
import { sameServer } from './virtual-server.ts';

/** The changes to one wanted virtual server, in this order. */
export interface ServerChange {
  /** The service port that wants it. */
  readonly owner: string;
  readonly key: string;
  readonly server: VirtualServer;
  readonly action: 'add' | 'edit' | 'keep';
  /** Its address is to be on the device and is not. */
  readonly bind: boolean;
  readonly add: readonly RealServer[];
  /** Back to full weight. */
  readonly restore: readonly RealServer[];
  /** Gracefully. */
  readonly remove: readonly RealServer[];
  /** Its real servers are not known, so that none is changed. */
  readonly unreadable?: Error;
}

export interface SetChange {
  readonly set: IpsetName;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Changes to virtual servers. */
export interface ServerChanges {
  readonly servers: readonly ServerChange[];
  /** Only after rules no longer lead there. */
  readonly deleteServers: readonly VirtualServer[];
}

/** Changes to what virtual servers share. */
export interface SharedChanges {
  readonly sets: readonly SetChange[];
  /** Only after rules no longer lead there. */
  readonly unbind: readonly string[];
}

export interface DiffOptions {
  /** Whether a real server is being drained already. */
  readonly isDraining: (serverKey: string, realKey: string) => boolean;
  /** Gives wanted real servers back the weight that an earlier run took: a restart forgets what it drains. */
  readonly resetWeights: boolean;
}

export const fullWeight = 1;

/** Everything that exists or is wanted. */
export function everything(current: CurrentState, desired: DesiredState): Scope {
  return {
    servers: union(desired.serverKeys(), current.servers.keys(), (key) => desired.wantsServer(key)),
    addresses: union(desired.addresses(), current.addresses, (address) => desired.wantsAddress(address)),
    entries: setNames.map((set) => [
      set,
      union(desired.entries(set), current.sets.get(set) ?? [], (entry) => desired.wantsEntry(set, entry)),
    ]),
  };
}

/** Lists changes to virtual servers. Pure. Servers that need no change are omitted. */
export function diffServers(
  current: CurrentState,
  desired: DesiredState,
  keys: Iterable<string>,
  options: DiffOptions,
): ServerChanges {
  const servers: ServerChange[] = [];
  const deleteServers: VirtualServer[] = [];
  for (const key of keys) {
    const known = current.servers.get(key);
    const change = changeOf(key, known, current, desired, options);
    if (change) servers.push(change);
    else if (known && !desired.wantsServer(key) && !isExcluded(known.server, desired.settings)) {
      deleteServers.push(known.server);
    }
  }
  return { servers, deleteServers };
}

/** The same for sets and addresses; those that are to be bound are in the changes of their virtual servers. */
export function diffShared(
  current: CurrentState,
  desired: DesiredState,
  { addresses, entries }: Pick<Scope, 'addresses' | 'entries'>,
): SharedChanges {
  const unbind: string[] = [];
  for (const address of addresses) {
    if (current.addresses.has(address) && !desired.wantsAddress(address)) unbind.push(address);
  }
  const sets = [...entries].flatMap(([set, some]) => setChange(set, some, current, desired));
  return { sets, unbind };
}

function changeOf(
  key: string,
  known: CurrentServer | undefined,
  current: CurrentState,
  desired: DesiredState,
  options: DiffOptions,
): ServerChange | undefined {
  const wanted = desired.server(key);
  if (!wanted) return undefined;
  const { server, owner } = wanted;
  const bind = desired.wantsAddress(server.address) && !current.addresses.has(server.address);
  const action = !known ? 'add' : sameServer(known.server, server) ? 'keep' : 'edit';
  if (known?.unreadable) {
    return { owner, key, server, action, bind, ...noReals, unreadable: known.unreadable };
  }
  const reals = realChanges(key, known, wanted.endpoints, options);
  const isSettled = action === 'keep' && !bind && Object.values(reals).every((list) => list.length === 0);
  return isSettled ? undefined : { owner, key, server, action, bind, ...reals };
}

type RealChanges = Pick<ServerChange, 'add' | 'restore' | 'remove'>;

const noReals: RealChanges = { add: [], restore: [], remove: [] };

function realChanges(
  key: string,
  known: CurrentServer | undefined,
  endpoints: readonly { readonly id: string; readonly ip: string; readonly port: number }[],
  { isDraining, resetWeights }: DiffOptions,
): RealChanges {
  const add: RealServer[] = [];
  const restore: RealServer[] = [];
  const wanted = new Set<string>();
  for (const { id, ip, port } of endpoints) {
    wanted.add(id);
    const there = known?.reals.get(id);
    const real = { address: ip, port, weight: fullWeight };
    if (!there) add.push(real);
    else if (isDraining(key, id) || (resetWeights && there.weight !== fullWeight)) restore.push(real);
  }
  const remove = [...(known?.reals ?? [])].flatMap(([id, real]) =>
    wanted.has(id) || isDraining(key, id) ? [] : [real],
  );
  return { add, restore, remove };
}

function setChange(
  set: IpsetName,
  entries: Iterable<string>,
  current: CurrentState,
  desired: DesiredState,
): SetChange[] {
  const there = current.sets.get(set);
  if (!there) return [];
  const add: string[] = [];
  const remove: string[] = [];
  for (const entry of entries) {
    const isWanted = desired.wantsEntry(set, entry);
    if (isWanted && !there.has(entry)) add.push(entry);
    else if (!isWanted && there.has(entry)) remove.push(entry);
  }
  return add.length + remove.length === 0 ? [] : [{ set, add, remove }];
}

function isExcluded({ address }: VirtualServer, { excludeCIDRs }: IpvsSettings): boolean {
  const ip = excludeCIDRs.length === 0 ? undefined : parseIP(address);
  return ip !== undefined && excludeCIDRs.some((cidr) => cidrContains(cidr, ip));
}

/** All of both, those in both once. */
function union(
  first: Iterable<string>,
  second: Iterable<string>,
  isInFirst: (item: string) => boolean,
): string[] {
  const all = [...first];
  for (const item of second) if (!isInFirst(item)) all.push(item);
  return all;
}
