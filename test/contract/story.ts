import type { Family } from '../../src/model/ip.ts';
import type { DatagramOptions, Transport } from '../cluster/lab/traffic.ts';
import type { ClientName, HostName, RangeName } from './address-book.ts';
import type { Scene } from './scene.ts';

/** Where an endpoint is: a pod, a process of the node itself, or an address at which nobody answers. */
export type EndpointPlace = 'A' | 'B' | 'C' | 'D' | 'node' | 'nobody';

export interface EndpointSpec {
  readonly at: EndpointPlace;
  /** `silent` is an endpoint without conditions, which counts as ready. */
  readonly state?: 'ready' | 'draining' | 'gone' | 'unready' | 'silent';
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

/** A service and its endpoints. Missing fields have the defaults of the API. */
export interface ServiceSpec {
  /** The service has a port for each protocol, all with the same number and node port. TCP when absent. */
  readonly protocols?: readonly ('TCP' | 'UDP' | 'SCTP')[];
  readonly port?: number;
  readonly nodePort?: boolean;
  readonly external?: boolean;
  /** Makes an address of another service, which is given by its number, an external IP of this one. */
  readonly claims?: { readonly of: number; readonly address: 'clusterIP' | 'external' | 'loadBalancer' };
  /** Creation time, in seconds of 2026, and UID. When absent, the object has neither. */
  readonly made?: { readonly at: number; readonly uid?: string };
  readonly loadBalancer?: boolean | 'Proxy' | 'hostname only';
  readonly internalPolicy?: 'Local';
  readonly externalPolicy?: 'Local';
  readonly affinitySeconds?: number;
  /** Families of the source ranges; when absent, all families of the cluster. */
  readonly rangeFamilies?: readonly Family[];
  readonly ranges?: readonly RangeName[];
  readonly headless?: boolean;
  /** Families of the service; when absent, all families of the cluster. */
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

/** The servers that must answer, all of them, and the source that each sees: the client's address or the node's. */
export type Answers = Readonly<Partial<Record<HostName | 'node', 'OWN' | 'MASQ'>>>;

/** REJECT: ICMP port unreachable; RESET: a TCP reset; DROP: nothing at all. */
export type Fate = 'REJECT' | 'DROP' | 'RESET';

/** The node leaves the packet to ordinary routing, and the world answers. */
export const IGNORE: Answers = { world: 'OWN' };

export interface Packet {
  readonly from: Source;
  readonly to: Target;
  /** Which service of the story; `web` when absent. */
  readonly of?: string;
  /** When absent, the first protocol of the service. */
  readonly transport?: Transport;
  /** Another port than the service's. */
  readonly port?: number;
  /** A source address that is not the sender's usual one. */
  readonly source?: string;
  readonly sourcePort?: number;
  /** What is special about a datagram. */
  readonly datagram?: DatagramOptions;
}

export type ExpectedPacket = Packet & {
  readonly expect: Answers | Fate;
  /** Returns another expected outcome for modes and families that differ. */
  readonly differs?: Difference;
};

export type Difference = (mode: string, family: Family) => Answers | Fate | undefined;

/** In iptables mode, in one family or in both, the outcome is this one. */
export function inIptables(expect: Answers | Fate, only?: Family): { readonly differs: Difference } {
  return {
    differs: (mode, family) => (mode === 'iptables' && (only ?? family) === family ? expect : undefined),
  };
}

/** In ipvs mode the outcome is this one, for a reason that test/contract/ipvs-promises.ts does not cover. */
export function inIpvs(expect: Answers | Fate): { readonly differs: Difference } {
  return { differs: (mode) => (mode === 'ipvs' ? expect : undefined) };
}

/** In modes without a service network the outcome is this one: they leave unused service addresses to routing. */
export function withoutServiceNetwork(expect: Answers | Fate): { readonly differs: Difference } {
  return { differs: (mode) => (mode === 'iptables' || mode === 'ipvs' ? expect : undefined) };
}

/** In modes that by default serve node ports at every address of the node, the outcome is this one. */
export function atEveryAddress(expect: Answers | Fate): { readonly differs: Difference } {
  return { differs: (mode) => (mode === 'iptables' || mode === 'ipvs' ? expect : undefined) };
}

/** The configuration of the program, and the node's objects in the cluster. */
export interface Setting {
  readonly masqueradeAll?: boolean;
  /** `NodeCIDR` when absent; `none` is the mode ClusterCIDR without a cluster CIDR. */
  readonly detectLocal?: 'ClusterCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix' | 'none';
  readonly nodePortAddresses?: readonly string[];
  readonly gates?: Readonly<Record<string, boolean>>;
  /** Two pods of the other node reach each other without this node: `remote` and `D`. */
  readonly neighbours?: true;
  /** Flags besides the configuration file. */
  readonly flags?: readonly string[];
  readonly masqueradeBit?: number;
  readonly serviceCIDRs?: 'none';
  /** Fields of the section of ipvs mode. */
  readonly ipvs?: Readonly<Record<string, unknown>>;
  /** How long userspace mode keeps an idle UDP session. */
  readonly udpIdleTimeout?: string;
  /** Families of the addresses that the Node object has; all when absent. */
  readonly nodeFamilies?: readonly Family[];
}

export interface Story {
  /** Skips refer to it, so it stays the same. C1 to C54 are the cases of the catalogue. */
  readonly id: string;
  readonly title: string;
  readonly setting: Setting;
  /** Families in which it runs; both when absent. */
  readonly families?: readonly Family[];
  /** Runs only in clusters with both families. */
  readonly dualStackOnly: boolean;
  /** No other story may run at the same time. */
  readonly alone: boolean;
  /** Why it cannot run on this machine; undefined when it can. */
  readonly unavailable?: string | undefined;
  run(scene: Scene): Promise<void>;
}

export type StoryOptions = Partial<
  Pick<Story, 'setting' | 'families' | 'dualStackOnly' | 'alone' | 'unavailable'>
>;

/** Objects, then packets. */
export interface Chapter {
  readonly given: ServiceSpec;
  readonly packets: readonly ExpectedPacket[];
}

/** A story with chapters. Each chapter changes the only service, `web`, and then sends packets. */
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
export function scripted(id: string, title: string, run: Story['run'], options: StoryOptions = {}): Story {
  return { setting: {}, dualStackOnly: false, alone: false, ...options, id, title, run };
}
