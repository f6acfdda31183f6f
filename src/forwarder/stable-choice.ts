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

  /**
   * The endpoint of the client's slot. Where that one is to be avoided, the endpoint of the next slot that has another
   * one: so the clients of an endpoint that does not answer spread over all others, and each is always sent to the same.
   * If all are to be avoided, the endpoint of the client's slot.
   */
  of({ ip, port }: SocketAddress, by: 'hash' | 'hash-client', avoid?: ReadonlySet<string>): string {
    const first = stableSlot(toIP(ip).bytes, by === 'hash' ? port : undefined);
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
