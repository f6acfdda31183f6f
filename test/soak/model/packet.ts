import type { Family } from '../../../src/model/ip.ts';
import type { Source, Target } from '../../contract/story.ts';

/** A new connection, or the first datagram of a new flow, to an address of a service. */
export interface SoakPacket {
  readonly n: number;
  readonly family: Family;
  readonly from: Source;
  readonly to: Target;
  readonly transport: 'tcp' | 'udp';
}

export function packetText({ n, family, from, to, transport }: SoakPacket): string {
  return `${transport} ${family} from ${from} to ${to} of service-${n}`;
}
