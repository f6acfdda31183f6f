import { types } from '../../../kernel/nft/fields.ts';
import type { NftSet, SetRef, TableRef } from '../../../kernel/nft/objects.ts';
import type { Family } from '../../../model/ip.ts';

export const setNames = [
  'portals',
  'near-portals',
  'pod-portals',
  'nodeports',
  'near-nodeports',
  'pod-nodeports',
  'refused',
  'refused-nodeports',
  'guarded',
  'sources',
  'cluster-addresses',
  'service-ranges',
  'node-addresses',
  'proxy-ports',
  'return-ports',
] as const;

export type PortalSetName = (typeof setNames)[number];

export function isSetName(name: string): name is PortalSetName {
  return (setNames as readonly string[]).includes(name);
}

export function portalTable(family: Family): TableRef {
  return { family: family === 'IPv4' ? 'ip' : 'ip6', name: 'kube-proxy-userspace' };
}

export function portalSet(family: Family, name: PortalSetName): SetRef {
  return { table: portalTable(family), name };
}

/** The declaration of a set, in the form that nft itself would write it. */
export function portalSetDefinition(family: Family, name: PortalSetName): NftSet {
  return { ...portalSet(family, name), ...shapeOf(family, name) };
}

function shapeOf(family: Family, name: PortalSetName): Omit<NftSet, 'table' | 'name'> {
  const address = family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr;
  const nodePort = [types.inetProto, types.inetService];
  const frontend = [address, ...nodePort];
  switch (name) {
    case 'portals':
    case 'near-portals':
    case 'pod-portals':
      return { key: frontend, data: [types.inetService] };
    case 'nodeports':
    case 'near-nodeports':
    case 'pod-nodeports':
      return { key: nodePort, data: [types.inetService] };
    case 'refused':
      return { key: frontend, data: 'verdict' };
    case 'refused-nodeports':
      return { key: nodePort, data: 'verdict' };
    case 'guarded':
      return { key: frontend };
    case 'sources':
      return { key: [...frontend, address], flags: ['interval'] };
    case 'cluster-addresses':
    case 'node-addresses':
      return { key: [address] };
    case 'service-ranges':
      return { key: [address], flags: ['interval'] };
    case 'proxy-ports':
      return { key: nodePort };
    case 'return-ports':
      return { key: [types.inetProto], data: [types.inetService] };
  }
}
