/** Characters of log that are kept. */
const KEPT = 256 * 1024;
/** The longest record that is kept whole. */
const LONGEST = 16 * 1024;

/** The last log records, for a support bundle; bounded. */
export class RecentRecords {
  readonly #records: string[] = [];
  #length = 0;

  add(record: string): void {
    // A copy, because the part of a string keeps the whole string in memory.
    const kept = record.length > LONGEST ? Buffer.from(`${record.slice(0, LONGEST)}…\n`).toString() : record;
    this.#records.push(kept);
    this.#length += kept.length;
    while (this.#length > KEPT) this.#length -= this.#records.shift()?.length ?? 0;
  }

  /** The oldest first, each with its line end. */
  list(): readonly string[] {
    return this.#records;
  }
}
