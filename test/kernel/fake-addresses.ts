import type { InterfaceAddresses } from '../../src/kernel/route/addresses.ts';
import type { Closable } from '../../src/kernel/route/client.ts';

/** Addresses that a test changes; it calls `onChange` itself. */
export class FakeAddresses implements InterfaceAddresses {
  current: string[];
  watches = 0;
  lists = 0;
  onChange: () => void = () => unwatched();
  onFailure: (error: Error) => void = () => unwatched();

  constructor(...current: string[]) {
    this.current = current;
  }

  async list(): Promise<string[]> {
    this.lists++;
    return this.current;
  }

  watch(onChange: () => void, onFailure: (error: Error) => void): Closable {
    this.watches++;
    this.onChange = onChange;
    this.onFailure = onFailure;
    return {
      close: () => {
        this.watches--;
      },
    };
  }

  close(): void {}
}

function unwatched(): never {
  throw new Error('nobody watches');
}
