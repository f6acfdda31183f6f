import { type Bytes, readWord, wordBytes } from './bytes.ts';
import type { Emit, Value } from './compile.ts';
import { isHandler, isSharedChain, type SharedChainName } from './shared-chains.ts';

const lastNumber = 0xffffffff;

/**
 * The numbers by which frontends name the shared chains that handle them; the map `handlers` says which is which. A
 * number goes to no second chain while this lasts: a packet may hold it during a commit.
 */
export class HandlerNumbers {
  readonly #numbers = new Map<SharedChainName, number>();
  readonly #taken = new Set<number>([0]);
  #last = 0;

  /** Keeps to the elements of `handlers` that were read from the kernel. */
  constructor(elements: ReadonlyMap<Bytes, Value> = new Map()) {
    for (const [key, value] of elements) {
      const number = readWord(key);
      const chain = handlerIn(value);
      const isUsable = chain !== undefined && !this.#numbers.has(chain) && !this.#taken.has(number);
      this.#taken.add(number);
      if (isUsable) this.#numbers.set(chain, number);
    }
  }

  /** The number of a chain; a new one at the first call. */
  of(chain: SharedChainName): number {
    const known = this.#numbers.get(chain);
    if (known !== undefined) return known;
    do this.#last = this.#last < lastNumber ? this.#last + 1 : 1;
    while (this.#taken.has(this.#last));
    this.#taken.add(this.#last);
    this.#numbers.set(chain, this.#last);
    return this.#last;
  }

  /** What `handlers` holds for a chain. */
  elementOf(chain: SharedChainName): readonly [key: Bytes, value: Value] {
    return [wordBytes(this.of(chain)), `goto ${chain}\n`];
  }

  /** Gives the chain another number if it ever returns. */
  retire(chain: SharedChainName): void {
    this.#numbers.delete(chain);
  }
}

/** The elements of `handlers` for those of the given chains that frontends may name. */
export function handlerElements(
  chains: Iterable<SharedChainName>,
  numbers: HandlerNumbers,
  emit: Emit,
): void {
  for (const chain of chains) if (isHandler(chain)) emit('handlers', ...numbers.elementOf(chain));
}

/** The shared chain that an element of `handlers` leads to. */
export function handlerIn(value: Value): SharedChainName | undefined {
  const chain = /^goto (\S+)\n/.exec(value)?.[1];
  return chain !== undefined && isSharedChain(chain) ? chain : undefined;
}
