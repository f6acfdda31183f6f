import { legacyTables } from '../kernel/iptables/table-reader.ts';
import type { Hook } from '../kernel/nft/objects.ts';
import type { RouteClient } from '../kernel/route/client.ts';
import { Sysctl } from '../kernel/sysctl.ts';
import type { SystemFiles } from '../kernel/system-files.ts';
import { isLoopback, toIP } from '../model/ip.ts';
import type { Ending, Headers } from './journey.ts';

/** What loses packets without a rule of nf_tables: routes and kernel parameters of this node. */
export interface LossFacts {
  readonly route: Pick<RouteClient, 'interfaceTowards' | 'listAddresses'>;
  readonly files: SystemFiles;
}

/** Reverse path filter: 1 wants the route back to lead to the same interface, 2 wants any route back. */
const strict = 1;
/** Routes to more endpoints than this are not looked up. */
const maxTargets = 16;

/** A packet where it was lost; `arrivedOn` is null for a packet of the node itself. */
export interface LostPacket {
  readonly headers: Headers;
  readonly arrivedOn: string | null;
  /** Addresses of the endpoints that kube-proxy may have chosen. */
  readonly targets: readonly string[];
}

/** The likely causes, the likeliest first; each completes "probably by …". */
export async function causesOfLoss(
  { hook, where }: Extract<Ending, { kind: 'lost' }>,
  packet: LostPacket,
  facts: LossFacts,
): Promise<string[]> {
  if (where === 'inside') return causesInside(hook, packet, facts);
  if (hook === 'forward') return [];
  const sysctl = new Sysctl(facts.files);
  const causes = [
    await filteredSource(packet, facts, sysctl),
    await missingRoute([packet.headers.destination], facts),
    noForwarding(packet, sysctl),
  ].filter((cause) => cause !== undefined);
  return causes.length > 0 ? causes : [await nothingFound(packet, facts, sysctl)];
}

async function filteredSource(
  { headers, arrivedOn }: LostPacket,
  { route }: LossFacts,
  sysctl: Sysctl,
): Promise<string | undefined> {
  if (arrivedOn === null) return undefined;
  const { source } = headers;
  const own = await route.listAddresses();
  if (isLoopback(toIP(source)) || own.some(({ ip }) => ip === source)) {
    return `the check for martian packets: the source ${source} is an address of this node itself`;
  }
  const filter = headers.family === 'IPv4' ? reversePathFilter(arrivedOn, sysctl) : 0;
  const back = filter === 0 ? '' : await route.interfaceTowards(source);
  const name = `the reverse path filter (net.ipv4.conf.${arrivedOn}.rp_filter is ${filter})`;
  if (filter !== 0 && back === '') return `${name}: no route leads to ${source}`;
  if (filter !== strict || back === arrivedOn) return undefined;
  return `${name}: the packet came by ${arrivedOn}, and the route to ${source} leads to ${back}`;
}

/** The larger of the settings for all interfaces and for this one holds. */
function reversePathFilter(name: string, sysctl: Sysctl): number {
  return Math.max(...['all', name].map((each) => sysctl.read(`net/ipv4/conf/${each}/rp_filter`) ?? 0));
}

async function missingRoute(
  destinations: readonly string[],
  { route }: LossFacts,
): Promise<string | undefined> {
  for (const destination of destinations.slice(0, maxTargets)) {
    const towards = await route.interfaceTowards(destination);
    if (towards === '') return `a missing route: none leads to ${destination}`;
  }
  return undefined;
}

function noForwarding({ headers, arrivedOn }: LostPacket, sysctl: Sysctl): string | undefined {
  if (arrivedOn === null) return undefined;
  const [version, name] = headers.family === 'IPv4' ? ['ipv4', arrivedOn] : ['ipv6', 'all'];
  const isOff = sysctl.read(`net/${version}/conf/${name}/forwarding`) === 0;
  return isOff ? `the node, which does not forward: net.${version}.conf.${name}.forwarding is 0` : undefined;
}

async function nothingFound(
  { headers, arrivedOn }: LostPacket,
  { route }: LossFacts,
  sysctl: Sysctl,
): Promise<string> {
  const { destination, family } = headers;
  const towards = `the route to ${destination} leads to ${await route.interfaceTowards(destination)}`;
  const filter =
    arrivedOn === null || family === 'IPv6'
      ? ''
      : `, and net.ipv4.conf.${arrivedOn}.rp_filter is ${reversePathFilter(arrivedOn, sysctl)}`;
  return `the routing of the kernel: ${towards}${filter}`;
}

/** Others that have hooks there: none of them is seen in a trace. */
async function causesInside(
  hook: Hook,
  { headers, targets }: LostPacket,
  facts: LossFacts,
): Promise<string[]> {
  // At this hook a packet gets its new destination, and the kernel drops it there when no route leads to that.
  const noRoute = hook === 'output' ? await missingRoute(targets, facts) : undefined;
  const sysctl = new Sysctl(facts.files);
  const [count, max] = ['count', 'max'].map((what) => sysctl.read(`net/netfilter/nf_conntrack_${what}`));
  const legacy = [...legacyTables(facts.files, headers.family)].filter(Boolean).sort();
  return [
    ...(noRoute === undefined ? [] : [noRoute]),
    ...(count !== undefined && max !== undefined && count >= max
      ? [`the connection table, which is full: net.netfilter.nf_conntrack_max is ${max}`]
      : []),
    ...(legacy.length > 0 ? [`legacy iptables, which has rules in tables ${legacy.join(', ')}`] : []),
    'something other than nf_tables: IPVS, a BPF program or a queue to another program',
  ];
}
