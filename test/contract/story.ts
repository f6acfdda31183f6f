import type { Family } from '../../src/model/ip.ts';
import type { Transport } from '../cluster/lab/traffic.ts';
import type { ClientName, HostName, RangeName } from './address-book.ts';
import type { Scene } from './scene.ts';

/** Where an endpoint is: a pod, a process of the node itself, or an address at which nobody answers. */
export type EndpointPlace = 'A' | 'B' | 'C' | 'D' | 'node' | 'nobody';

export interface EndpointSpec {
  readonly at: EndpointPlace;
  /** `silent` about its conditions means ready. */
  readonly state?: 'ready' | 'draining' | 'gone' | 'unready' | 'silent';
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

/** A service and its endpoints; everything that it does not say is as the API defaults it. */
export interface ServiceSpec {
  /** One port of each, with the same number and node port; TCP when absent. */
  readonly protocols?: readonly ('TCP' | 'UDP' | 'SCTP')[];
  readonly port?: number;
  readonly nodePort?: boolean;
  readonly external?: boolean;
  /** External IPs that are an address of another service, by its number. */
  readonly claims?: { readonly of: number; readonly address: 'clusterIP' | 'external' | 'loadBalancer' };
  /** When it was made, in seconds of 2026, and its UID; the API server says neither when absent. */
  readonly made?: { readonly at: number; readonly uid?: string };
  readonly loadBalancer?: boolean | 'Proxy' | 'hostname only';
  readonly internalPolicy?: 'Local';
  readonly externalPolicy?: 'Local';
  readonly affinitySeconds?: number;
  /** Ranges of these families only; of all that the cluster has when absent. */
  readonly rangeFamilies?: readonly Family[];
  readonly ranges?: readonly RangeName[];
  readonly headless?: boolean;
  /** Its families; all that the cluster has when absent. */
  readonly families?: readonly Family[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly distribution?: 'PreferSameZone' | 'PreferSameNode';
  readonly endpoints: readonly (EndpointPlace | EndpointSpec)[];
}

export type Source = Exclude<HostName, 'outside' | 'world'> | ClientName | 'node';

/** `second`, `loopback` and `loopback2` are node ports at other addresses of the node. */
export type Target =
  | 'clusterIP'
  | 'external'
  | 'loadBalancer'
  | 'nodePort'
  | 'second'
  | 'loopback'
  | 'loopback2'
  | 'unallocated';

/** Who may answer, and what each then sees: the client's own address or one of the node's. All must come up. */
export type Answers = Readonly<Partial<Record<HostName | 'node', 'OWN' | 'MASQ'>>>;

/** REJECT: ICMP port unreachable; RESET: a TCP reset; DROP: nothing at all. */
export type Fate = 'REJECT' | 'DROP' | 'RESET';

/** Left to ordinary routing, which leads out into the world. */
export const IGNORE: Answers = { world: 'OWN' };

export interface Packet {
  readonly from: Source;
  readonly to: Target;
  /** Which service of the story; `web` when absent. */
  readonly of?: string;
  /** The first protocol of the service when absent. */
  readonly transport?: Transport;
  /** Another port than the service's. */
  readonly port?: number;
  /** A source address that is not the sender's usual one. */
  readonly source?: string;
  readonly sourcePort?: number;
}

export type ExpectedPacket = Packet & {
  readonly expect: Answers | Fate;
  /** What is promised instead in modes that differ, and in which families they do. */
  readonly differs?: Difference;
};

export type Difference = (mode: string, family: Family) => Answers | Fate | undefined;

/** In iptables mode, in one family or in both, a packet fares otherwise. */
export function inIptables(expect: Answers | Fate, only?: Family): { readonly differs: Difference } {
  return {
    differs: (mode, family) => (mode === 'iptables' && (only ?? family) === family ? expect : undefined),
  };
}

/** In ipvs mode a packet fares otherwise, for another reason than those that test/contract/ipvs-promises.ts has. */
export function inIpvs(expect: Answers | Fate): { readonly differs: Difference } {
  return { differs: (mode) => (mode === 'ipvs' ? expect : undefined) };
}

/** Modes that know no service network leave addresses to ordinary routing that no service has. */
export function withoutServiceNetwork(expect: Answers | Fate): { readonly differs: Difference } {
  return { differs: (mode) => (mode === 'iptables' || mode === 'ipvs' ? expect : undefined) };
}

/** Modes in which node ports are served at every address of the node unless it is told otherwise. */
export function atEveryAddress(expect: Answers | Fate): { readonly differs: Difference } {
  return { differs: (mode) => (mode === 'iptables' || mode === 'ipvs' ? expect : undefined) };
}

/** How the program is configured, and what the cluster knows of the node. */
export interface Setting {
  readonly masqueradeAll?: boolean;
  /** `NodeCIDR` when absent; `none` is a cluster CIDR that nobody has told. */
  readonly detectLocal?: 'ClusterCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix' | 'none';
  readonly nodePortAddresses?: readonly string[];
  readonly gates?: Readonly<Record<string, boolean>>;
  readonly masqueradeBit?: number;
  readonly serviceCIDRs?: 'none';
  /** Fields of the section of ipvs mode. */
  readonly ipvs?: Readonly<Record<string, unknown>>;
  /** Families of the addresses that the Node object has; all when absent. */
  readonly nodeFamilies?: readonly Family[];
}

export interface Story {
  /** Stable: what a skip names. C1 to C54 are the cases of the nftables chapter. */
  readonly id: string;
  readonly title: string;
  readonly setting: Setting;
  /** Families in which it is told; both when absent. */
  readonly families?: readonly Family[];
  /** Told only in clusters with both families. */
  readonly dualStackOnly: boolean;
  /** Nothing else may happen meanwhile. */
  readonly alone: boolean;
  /** What this machine lacks for it. */
  readonly unavailable?: string | undefined;
  tell(scene: Scene): Promise<void>;
}

export type StoryOptions = Partial<
  Pick<Story, 'setting' | 'families' | 'dualStackOnly' | 'alone' | 'unavailable'>
>;

/** Objects, then packets. */
export interface Chapter {
  readonly given: ServiceSpec;
  readonly packets: readonly ExpectedPacket[];
}

/** A story whose chapters each change the one service `web` and then send packets. */
export function story(
  id: string,
  title: string,
  chapters: Chapter | readonly Chapter[],
  options?: StoryOptions,
): Story {
  const list = 'given' in chapters ? [chapters] : chapters;
  return scripted(
    id,
    title,
    async (scene) => {
      for (const { given, packets } of list) {
        await scene.apply(given);
        await scene.expect(...packets);
      }
    },
    options,
  );
}

/** A story that does more than put objects and send packets. */
export function scripted(id: string, title: string, tell: Story['tell'], options: StoryOptions = {}): Story {
  return { setting: {}, dualStackOnly: false, alone: false, ...options, id, title, tell };
}
