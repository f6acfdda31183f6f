const lineFeed = 10;
const carriageReturn = 13;

/**
 * Bytes that a client has sent and nobody has read. They are kept outside of the heap, and their memory is free as soon as
 * they are dropped: strings would wait for a collection of the old generation, and a flood would make many.
 */
export class UnreadBytes {
  #bytes: Buffer | undefined;
  #at = 0;

  get length(): number {
    return (this.#bytes?.length ?? 0) - this.#at;
  }

  /** Takes over the bytes: the caller must not use them any more. */
  add(bytes: Buffer): void {
    if (this.#bytes === undefined) this.#bytes = bytes;
    else {
      const all = Buffer.concat([this.#bytes.subarray(this.#at), bytes]);
      release(this.#bytes);
      release(bytes);
      this.#bytes = all;
      this.#at = 0;
    }
  }

  /** Forgets as many bytes from the beginning. */
  drop(length: number): void {
    this.#at += length;
    if (this.#bytes === undefined || this.length > 0) return;
    release(this.#bytes);
    this.#bytes = undefined;
    this.#at = 0;
  }

  text(): string {
    return this.#bytes?.toString('latin1', this.#at) ?? '';
  }

  /** The text until the first empty line, or all of it if there is none. */
  headText(): string {
    const bytes = this.#bytes;
    if (bytes === undefined) return '';
    for (let at = bytes.indexOf(lineFeed, this.#at); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
      const next = bytes[at + 1] === carriageReturn ? at + 2 : at + 1;
      if (bytes[next] === lineFeed) return bytes.toString('latin1', this.#at, next + 1);
    }
    return this.text();
  }
}

/** Frees the memory now, unless it is part of something larger. */
function release({ buffer, length }: Buffer): void {
  if (buffer.byteLength === length && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
