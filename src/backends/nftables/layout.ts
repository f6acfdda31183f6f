import { typeOf, types } from '../../kernel/nft/fields.ts';
import type { NftSet, SetRef, TableRef } from '../../kernel/nft/objects.ts';
import type { Family } from '../../model/ip.ts';

/** What `nft list` shows as the purpose of the table; fixed by upstream. */
export const tableComment = 'rules for kube-proxy';

/**
 * Marks a table as written in this layout: comment of the map `frontends`. A table without it is replaced as a
 * whole, so any change of names, types or meaning of sets needs a new number.
 */
export const layoutStamp = 'kube-proxy-ts layout 3';

/**
 * Slots of a frontend's endpoints on this node start here, where it has a second list for them. No memory holds enough
 * endpoints for the first list to reach this slot.
 */
export const localSlotBase = 1_000_000_000;

/** Records of client affinity that a node can hold per family. The kernel sizes the hash table by it. */
export const maxClients = 1 << 20;

/**
 * The kernel forgets a departed endpoint after this time. This program takes it out of the set earlier; the time is for
 * the case that the program does not run.
 */
const departedTimeoutMs = 1_200_000;

/** Sets that always exist. */
export const fixedSets = [
  'frontends',
  'nodeports',
  'handlers',
  'endpoints',
  'nodeport-endpoints',
  'refused',
  'refused-nodeports',
  'guarded',
  'cluster-addresses',
  'hairpins',
  'node-addresses',
  'service-ranges',
] as const;

/** Sets that exist from the first service on whose endpoints are known by numbers. */
export const numberedSets = [
  'sticky-services',
  'sticky-nodeports',
  'sticky-slots',
  'sticky-members',
  'sticky-local-members',
] as const;

/** `clients` exists from the first service with client affinity on; `departed` while an endpoint is gone whose connections get a reset. */
type NamedSet =
  | (typeof fixedSets)[number]
  | (typeof numberedSets)[number]
  | 'clients'
  | 'loopback-nodeports'
  | 'departed';

/** `sources-24` holds the allowed sources of prefix length 24; such a set exists from its first use on. */
export type SetName = NamedSet | `sources-${number}`;

/** What an element carries besides its key. */
export type ValueKind = 'none' | 'data' | 'number' | 'verdict';

type Shape = Omit<NftSet, 'table' | 'name'>;

const shapes: Readonly<Record<Family, Readonly<Record<NamedSet, Shape>>>> = {
  IPv4: shapesOf('IPv4'),
  IPv6: shapesOf('IPv6'),
};

export function tableOf(family: Family): TableRef {
  return { family: family === 'IPv4' ? 'ip' : 'ip6', name: 'kube-proxy' };
}

export function setRef(family: Family, name: SetName): SetRef {
  return { table: tableOf(family), name };
}

/** Whether a name found in the kernel is one that this layout uses. */
export function isSetName(name: string): name is SetName {
  return name in shapes.IPv4 || /^sources-[0-9]{1,3}$/.test(name);
}

export function valueKindOf(name: SetName): ValueKind {
  const data = isSourceSet(name) ? undefined : shapes.IPv4[name].data;
  if (data === undefined) return 'none';
  if (data === 'verdict') return 'verdict';
  return name === 'frontends' || name === 'nodeports' ? 'number' : 'data';
}

/** The declaration of a set, in the form that nft itself would write it. */
export function setDefinition(family: Family, name: SetName): NftSet {
  return { ...setRef(family, name), ...shapeOf(family, name) };
}

function shapeOf(family: Family, name: SetName): Shape {
  return isSourceSet(name) ? { key: sourcesKey(family) } : shapes[family][name];
}

export function isSourceSet(name: SetName): name is `sources-${number}` {
  return name.startsWith('sources-');
}

function sourcesKey(family: Family): Shape['key'] {
  const address = family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr;
  return [address, types.inetProto, types.inetService, address];
}

function shapesOf(family: Family): Record<NamedSet, Shape> {
  const address = family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr;
  const daddr = family === 'IPv4' ? typeOf.ipDaddr : typeOf.ip6Daddr;
  const saddr = family === 'IPv4' ? typeOf.ipSaddr : typeOf.ip6Saddr;
  const nodePort = [types.inetProto, types.inetService];
  const frontend = [address, ...nodePort];
  // Only the typeof form can declare a random number or a priority; nft does not hold slots to the modulus.
  const slot = typeOf.numgenRandom(65536);
  const target = [daddr, typeOf.thDport];
  const instance = [typeOf.priority];
  return {
    frontends: { key: frontend, data: [types.classid], comment: layoutStamp },
    nodeports: { key: nodePort, data: [types.classid] },
    handlers: { key: [types.classid], data: 'verdict' },
    endpoints: { key: [daddr, typeOf.l4proto, typeOf.thDport, slot], data: target },
    'nodeport-endpoints': { key: [typeOf.l4proto, typeOf.thDport, slot], data: target },
    refused: { key: frontend, data: 'verdict' },
    'refused-nodeports': { key: nodePort, data: 'verdict' },
    guarded: { key: frontend, data: 'verdict' },
    'cluster-addresses': { key: [address] },
    hairpins: { key: [address, ...frontend] },
    'node-addresses': { key: [address] },
    'service-ranges': { key: [address], flags: ['interval'] },
    'sticky-services': { key: frontend, data: [types.classid] },
    'sticky-nodeports': { key: nodePort, data: [types.classid] },
    'sticky-slots': { key: [typeOf.priority, slot], data: instance },
    'sticky-members': { key: instance, data: target },
    'sticky-local-members': { key: instance, data: target },
    clients: {
      key: [typeOf.priority, saddr],
      data: instance,
      flags: ['dynamic', 'timeout'],
      size: maxClients,
      gcIntervalMs: 10_000,
    },
    'loopback-nodeports': { key: nodePort, data: 'verdict' },
    departed: { key: [address, types.inetService], flags: ['timeout'], timeoutMs: departedTimeoutMs },
  };
}
