import type { Packet } from '../backends/inspection.ts';
import { cidrContains, type Family, isLoopback, parseCIDR, parseIP } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';
import type { NodePortAddresses } from '../model/node-port-addresses.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';

/** What becomes of packets depends on this besides services. */
export interface NodeFacts {
  readonly mode: ProxyMode;
  readonly family: Family;
  readonly nodeName: string;
  /** This node's address in this family; empty when unknown. */
  readonly nodeIP: string;
  /**
   * Canonical, every interface address of the family; in ipvs mode without those of `kube-ipvs0`, which are there for
   * services and not the node's own.
   */
  readonly ownAddresses: readonly string[];
  readonly nodePortAddresses: NodePortAddresses;
  readonly localDetector: LocalDetector;
  readonly masqueradeAll: boolean;
  /** Canonical, of this family. */
  readonly serviceCIDRs: readonly string[];
  /** iptables mode: the setting of that name. nftables mode: the feature gate KubeProxyNFTablesLocalhostNodePorts. */
  readonly localhostNodePorts: boolean;
  /** ipvs mode: how virtual servers choose; round robin when absent. userspace mode: `lc` or turns. */
  readonly scheduler?: string;
}

/** The address is one of this node's; all of 127.0.0.0/8 is. */
export function isOwnAddress(address: string, { ownAddresses }: NodeFacts): boolean {
  return isLoopbackAddress(address) || ownAddresses.includes(address);
}

export function isLoopbackAddress(address: string): boolean {
  const ip = parseIP(address);
  return ip !== undefined && isLoopback(ip);
}

/** Where a packet comes from, as rules see it: a pod counts before the node does. */
export type Sender = 'pod' | 'node' | 'other';

export interface Sending {
  /** Whether the local detector takes it for a pod's; undefined when there is nothing that could tell. */
  readonly isPod: boolean | undefined;
  /** The source is an address of this node. */
  readonly isNode: boolean;
  /** How the detector came to that. */
  readonly reason: string;
}

export function sendingOf(packet: Packet, node: NodeFacts): Sending {
  const isNode = isOwnAddress(packet.source, node);
  return { ...detect(packet, node.localDetector), isNode };
}

export function senderOf({ isPod, isNode }: Sending): Sender {
  if (isPod === true) return 'pod';
  return isNode ? 'node' : 'other';
}

function detect({ source, origin }: Packet, detector: LocalDetector): Pick<Sending, 'isPod' | 'reason'> {
  if (detector.kind === 'none') {
    return { isPod: undefined, reason: 'nothing is configured by which pods could be told from others' };
  }
  if (detector.kind === 'cidr') {
    const isPod = isInRange(source, detector.cidr);
    return { isPod, reason: `${source} is ${isPod ? '' : 'not '}in the pod range ${detector.cidr}` };
  }
  const wanted = detector.kind === 'interface' ? detector.name : `${detector.prefix}*`;
  if (origin === 'node') {
    return { isPod: false, reason: `the node sends it itself, it arrives by no interface ${wanted}` };
  }
  const name = origin.interface;
  if (name === '') {
    return {
      isPod: false,
      reason: `it is not known to arrive by an interface ${wanted}, as packets of pods do`,
    };
  }
  const isPod = detector.kind === 'interface' ? name === detector.name : name.startsWith(detector.prefix);
  return { isPod, reason: `it arrives by ${name}, packets of pods by ${wanted}` };
}

/** The address is in the CIDR; false where either is not one. */
export function isInRange(address: string, range: string): boolean {
  const [ip, cidr] = [parseIP(address), parseCIDR(range)];
  return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
}
