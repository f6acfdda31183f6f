import { cidrContains, type Family, isLoopback, parseCIDR, parseIP } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';
import type { NodePortAddresses } from '../model/node-port-addresses.ts';
import type { Packet } from './inspection.ts';

/** The facts of this node, besides plans, that decide about packets of one family. */
export interface NodeFacts {
  readonly family: Family;
  /** This node's address in this family; empty when unknown. */
  readonly nodeIP: string;
  /**
   * Every interface address of the family, canonical, without those of `kube-ipvs0`: ipvs mode keeps addresses of
   * services there.
   */
  readonly ownAddresses: readonly string[];
  readonly nodePortAddresses: NodePortAddresses;
  readonly localDetector: LocalDetector;
  readonly masqueradeAll: boolean;
  /** Canonical, of this family. */
  readonly serviceCIDRs: readonly string[];
}

/** Whether this node has the address; it has all of 127.0.0.0/8. */
export function isOwnAddress(address: string, { ownAddresses }: NodeFacts): boolean {
  return isLoopbackAddress(address) || ownAddresses.includes(address);
}

export function isLoopbackAddress(address: string): boolean {
  const ip = parseIP(address);
  return ip !== undefined && isLoopback(ip);
}

/** Whether the CIDR contains the address; false when one of them cannot be read. */
export function isInRange(address: string, range: string): boolean {
  const [ip, cidr] = [parseIP(address), parseCIDR(range)];
  return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
}

/** The sender of a packet, as rules see it. A pod at an address of the node is a pod. */
export interface Sender {
  readonly kind: 'pod' | 'node' | 'other';
  /** The answer of the local detector; undefined when none is configured. */
  readonly isPod: boolean | undefined;
  /** Why the detector answered so. */
  readonly reason: string;
}

export function senderOf(packet: Packet, node: NodeFacts): Sender {
  const detected = detect(packet, node.localDetector);
  const kind = detected.isPod ? 'pod' : isOwnAddress(packet.source, node) ? 'node' : 'other';
  return { kind, ...detected };
}

function detect({ source, origin }: Packet, detector: LocalDetector): Pick<Sender, 'isPod' | 'reason'> {
  if (detector.kind === 'none') {
    return { isPod: undefined, reason: 'no setting tells pods from other clients' };
  }
  if (detector.kind === 'cidr') {
    const isPod = isInRange(source, detector.cidr);
    return { isPod, reason: `${source} is ${isPod ? '' : 'not '}in the pod range ${detector.cidr}` };
  }
  const wanted = detector.kind === 'interface' ? detector.name : `${detector.prefix}*`;
  if (origin === 'node') {
    return { isPod: false, reason: `the node itself sends it; packets of pods arrive on ${wanted}` };
  }
  const name = origin.interface;
  if (name === '') {
    const reason = `it is not known to arrive on an interface ${wanted}, as packets of pods do`;
    return { isPod: false, reason };
  }
  const isPod = detector.kind === 'interface' ? name === detector.name : name.startsWith(detector.prefix);
  return { isPod, reason: `it arrives on ${name}, packets of pods on ${wanted}` };
}
