/** The ids of flows that a look at the table found: many, so in four bytes each. */
export class SeenIds {
  #ids = new Uint32Array(1024);
  #length = 0;
  #isSorted = true;

  add(id: number): void {
    if (this.#length === this.#ids.length) {
      const larger = new Uint32Array(this.#length * 2);
      larger.set(this.#ids);
      this.#ids = larger;
    }
    this.#ids[this.#length++] = id;
    this.#isSorted = false;
  }

  has(id: number): boolean {
    if (!this.#isSorted) {
      this.#ids.subarray(0, this.#length).sort();
      this.#isSorted = true;
    }
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ids[middle] ?? 0) < id) low = middle + 1;
      else high = middle;
    }
    return low < this.#length && this.#ids[low] === id;
  }
}
