import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IpvsSettings } from '../../src/backends/ipvs/settings.ts';
import type { SetDefinition } from '../../src/kernel/ipset/objects.ts';
import type { Family } from '../../src/model/ip.ts';
import { localDetectors } from '../../src/model/local-detector.ts';
import { expandNodePortAddresses, nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import type { RecordedCluster } from '../plan/recorded-cluster.ts';
import type { FakeKernel } from './fake-kernel.ts';

/** A cluster as upstream saw it in ipvs mode, and what the kernel held afterwards. */
export interface RecordedIpvsCluster extends RecordedCluster {
  readonly config: {
    readonly detectLocalMode: string;
    readonly clusterCIDR: string;
    readonly detectLocal?: { readonly bridgeInterface?: string; readonly interfaceNamePrefix?: string };
    readonly nodePortAddresses?: readonly string[];
    readonly iptables?: { readonly masqueradeBit?: number; readonly masqueradeAll?: boolean };
  };
  readonly node: RecordedCluster['node'] & { readonly spec: { readonly podCIDRs: readonly string[] } };
  readonly expect: RecordedCluster['expect'] &
    Readonly<Record<'ipvs' | 'ipset' | 'addresses', readonly string[]>>;
}

const directory = join(import.meta.dirname, '../vectors/ipvs');

export function recordedIpvsClusters(): { readonly name: string; readonly cluster: RecordedIpvsCluster }[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ name, cluster: JSON.parse(readFileSync(join(directory, name), 'utf8')) }));
}

const nodeIPs = { IPv4: '192.168.100.1', IPv6: 'fd00:100::1' };
/** What the recording machine had; its second IPv4 address is in the node ports of the recordings. */
export const interfaceAddresses = [
  '127.0.0.1',
  '::1',
  '192.168.100.1',
  '10.200.0.2',
  'fd00:100::1',
  'fe80::1',
];

export function settingsOf({ config, node }: RecordedIpvsCluster, family: Family): IpvsSettings {
  const { detectors } = localDetectors({
    mode: config.detectLocalMode,
    clusterCIDRs: config.clusterCIDR.split(','),
    podCIDRs: node.spec.podCIDRs,
    bridgeInterface: config.detectLocal?.bridgeInterface ?? '',
    interfaceNamePrefix: config.detectLocal?.interfaceNamePrefix ?? '',
    primary: 'IPv4',
  });
  const entries = expandNodePortAddresses(config.nodePortAddresses ?? [], nodeIPs);
  return {
    family,
    scheduler: 'rr',
    excludeCIDRs: [],
    masqueradeBit: config.iptables?.masqueradeBit ?? 14,
    masqueradeAll: config.iptables?.masqueradeAll ?? false,
    localDetector: detectors[family],
    nodePortAddresses: nodePortAddresses(family, entries),
    nodeIP: nodeIPs[family],
  };
}

const serviceOptions = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' } as const;

/** What `ipvsadm -Sn` prints, sorted. */
export function savedServers(kernel: FakeKernel): string[] {
  return [...kernel.virtual].flatMap(([key, { server, reals }]) => {
    const place = `${serviceOptions[server.protocol]} ${key.split('/')[0]}`;
    const persistence = server.flags & 1 ? ` -p ${server.timeout}` : '';
    return [
      `-A ${place} -s ${server.scheduler}${persistence}`,
      ...[...reals].map(([real, { weight }]) => `-a ${place} -r ${real} -m -w ${weight}`),
    ];
  });
}

/** What `ipset save` prints, without the size of hashes, which depends on the machine. */
export function savedSets(kernel: FakeKernel): string[] {
  return [...kernel.ipsets].flatMap(([name, { definition, entries }]) => [
    `create ${name} ${parametersOf(definition)}`,
    ...[...entries].map((entry) => `add ${name} ${entry}`),
  ]);
}

function parametersOf(set: SetDefinition): string {
  if (set.type === 'bitmap:port') return `${set.type} range ${set.from}-${set.to}`;
  return `${set.type} family ${set.family === 'IPv4' ? 'inet' : 'inet6'} maxelem ${set.maxElements}`;
}
