import { toIP } from '../model/ip.ts';
import { stableSlot, stableSlots, stableTable } from '../model/stable-table.ts';
import type { SocketAddress } from './socket-address.ts';

/** Chooses endpoints by a hash of the client, as nodes in nftables mode do. */
export class StableChoice {
  readonly #endpoints: readonly string[];
  readonly #table: Uint16Array;

  constructor(endpoints: readonly string[]) {
    this.#endpoints = endpoints.toSorted();
    this.#table = stableTable(this.#endpoints);
  }

  /** The endpoint of the client's slot, or of the next one whose endpoint is not to be avoided. */
  of({ ip, port }: SocketAddress, by: 'hash' | 'hash-client', avoid?: ReadonlySet<string>): string {
    const address = toIP(ip).bytes;
    const client = by === 'hash' ? Uint8Array.of(...address, port >> 8, port & 0xff, 0, 0) : address;
    const first = stableSlot(client);
    for (let step = 0; step < stableSlots; step++) {
      const endpoint = this.#endpointAt(first + step);
      if (!avoid?.has(endpoint)) return endpoint;
    }
    return this.#endpointAt(first);
  }

  #endpointAt(slot: number): string {
    return this.#endpoints[this.#table[slot % stableSlots] ?? 0] ?? '';
  }
}
