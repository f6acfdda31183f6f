import { jhash, scaled } from '../lib/jhash.ts';

/**
 * Slots of a table: a prime number. More of them make shares more equal, and cost memory and time: modes hold a table
 * for each service port that has one.
 */
export const stableSlots = 509;

/** Beyond this, shares would differ by more than a quarter: endpoints have four slots or five. */
export const maxStableEndpoints = 120;

/** Of the hash of a client, which chooses a slot. The same on all nodes, or they would not agree. */
export const clientSeed = 1;

const free = 0xffff;
const encoder = new TextEncoder();

/**
 * Which endpoint has which slot, as indexes into `ids`: Maglev's table. It follows from the ids alone, so that all
 * nodes with the same endpoints have the same table, and one endpoint more or less moves few slots between the others.
 * `ids` are distinct and sorted.
 */
export function stableTable(ids: readonly string[]): Uint16Array {
  const table = new Uint16Array(stableSlots).fill(free);
  const preferences = ids.map((id) => new Preferences(encoder.encode(id)));
  // Endpoints take turns; each takes the slot that it likes best among the free ones.
  for (let taken = 0; taken < stableSlots && ids.length > 0; ) {
    for (const [index, preference] of preferences.entries()) {
      if (taken === stableSlots) break;
      table[preference.nextFree(table)] = index;
      taken++;
    }
  }
  return table;
}

/**
 * The slot of a client, by its address and port, or by its address alone. nf_tables hashes what its registers hold: the
 * port in network order takes one of four bytes.
 */
export function stableSlot(address: Uint8Array, port?: number): number {
  const client = port === undefined ? address : Uint8Array.of(...address, port >> 8, port & 0xff, 0, 0);
  return scaled(jhash(client, clientSeed), stableSlots);
}

/** All slots in the order in which an endpoint likes them. */
class Preferences {
  #slot: number;
  readonly #step: number;

  constructor(id: Uint8Array) {
    this.#slot = jhash(id, 1) % stableSlots;
    // As the number of slots is prime, steps of any length lead to every slot.
    this.#step = (jhash(id, 2) % (stableSlots - 1)) + 1;
  }

  nextFree(table: Uint16Array): number {
    while (table[this.#slot] !== free) this.#slot = (this.#slot + this.#step) % stableSlots;
    return this.#slot;
  }
}
