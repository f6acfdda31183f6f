import { type ServeOptions, type Serving, serveWithRetry } from './listen.ts';

export type MovableServerOptions = Omit<ServeOptions, 'address' | 'hardFail' | 'onListening'>;

/** Where a server listens, '' for nowhere; and whether a failure there calls `onHardFail` instead of being retried. */
export interface Place {
  readonly address: string;
  readonly hardFail: boolean;
}

/** An HTTP server whose address can change while it serves. */
export class MovableServer {
  readonly #options: MovableServerOptions;
  #place: Place;
  #serving: Serving | undefined;

  /** Serves at a place. A failure is retried or reported, as it says. */
  constructor(options: MovableServerOptions, place: Place) {
    this.#options = options;
    this.#place = place;
    this.#serving = this.#serve();
  }

  /** Serves at another place. Rejects when it cannot listen there, and then serves at the former one. */
  async move(place: Place): Promise<void> {
    const former = this.#place;
    if (place.address !== former.address) {
      const serving = place.address === '' ? undefined : await this.#replace(place.address);
      // Requests under way are answered.
      void this.#serving?.close();
      this.#serving = serving;
    }
    this.#place = place;
  }

  /** Listens at another address. When it cannot because the former one has the port, closes that first. */
  async #replace(address: string): Promise<Serving> {
    try {
      return await this.#open(address);
    } catch (error) {
      const former = this.#serving;
      if (!former || portOf(address) !== portOf(this.#place.address)) throw error;
      void former.close();
      try {
        return await this.#open(address);
      } catch (again) {
        this.#serving = this.#serve();
        throw again;
      }
    }
  }

  /** Resolves when the server listens; rejects when it cannot. */
  #open(address: string): Promise<Serving> {
    const listening = Promise.withResolvers<Serving>();
    let isListening = false;
    const isHard = () => !isListening || this.#place.hardFail;
    const serving = serveWithRetry({
      ...this.#options,
      address,
      get hardFail() {
        return isHard();
      },
      onHardFail: (error) => (isListening ? this.#options.onHardFail(error) : listening.reject(error)),
      onListening: () => {
        isListening = true;
        listening.resolve(serving);
      },
    });
    return listening.promise;
  }

  #serve(): Serving | undefined {
    const { address } = this.#place;
    if (address === '') return undefined;
    const isHard = () => this.#place.hardFail;
    return serveWithRetry({
      ...this.#options,
      address,
      get hardFail() {
        return isHard();
      },
    });
  }
}

function portOf(address: string): string {
  return address.slice(address.lastIndexOf(':') + 1);
}
