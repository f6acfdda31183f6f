import { parseIP } from '../../../model/ip.ts';
import type { Packet } from '../../inspection.ts';
import { protocolNumbers } from '../portals/elements.ts';

/** Bytes of an IP header, and where its two addresses are. */
const headers = {
  IPv4: { length: 20, source: 12, destination: 16, number: 2 },
  IPv6: { length: 40, source: 8, destination: 24, number: 10 },
} as const;

/** What rules see of the first packet of a connection, on its way. */
export interface SeenPacket {
  readonly destination: string;
  readonly port: number;
  readonly source: string;
  /** The beginnings of its headers; the rest is not known. */
  readonly network: Uint8Array;
  readonly transport: Uint8Array;
  readonly protocol: number;
  /** NFPROTO_IPV4 or NFPROTO_IPV6. */
  readonly family: number;
  /** By which it was received; undefined while it leaves this node, empty when it is not known. */
  readonly interface: string | undefined;
  /** Its destination was rewritten. */
  readonly isTranslated: boolean;
}

/** The packet as it first meets rules; throws when an address is none. */
export function seenPacket({ family, protocol, source, destination, port, origin }: Packet): SeenPacket {
  const header = headers[family];
  const network = new Uint8Array(header.length);
  network.set(bytesOf(source), header.source);
  network.set(bytesOf(destination), header.destination);
  return {
    source,
    destination,
    port,
    network,
    transport: Uint8Array.of(0, 0, port >> 8, port & 0xff),
    protocol: protocolNumbers[protocol],
    family: header.number,
    interface: origin === 'node' ? undefined : origin.interface,
    isTranslated: false,
  };
}

/** The same packet with another destination. */
export function sentTo(packet: Packet, destination: string, port: number): SeenPacket {
  return { ...seenPacket({ ...packet, destination, port }), isTranslated: true };
}

function bytesOf(ip: string): Uint8Array {
  const parsed = parseIP(ip);
  if (!parsed) throw new Error(`${JSON.stringify(ip)} is not an IP address`);
  return parsed.bytes;
}
