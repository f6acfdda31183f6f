import type { Clock } from '../lib/clock.ts';
import { Engine, type EngineOptions } from './engine.ts';
import type {
  ForwardedService,
  Forwarder,
  ListenerState,
  Listening,
  Outlook,
  TrafficReport,
} from './forwarder.ts';
import type { SocketAddress } from './socket-address.ts';

/** A forwarder in the main thread, for little traffic. */
export class LocalForwarder implements Forwarder {
  readonly #engine: Engine;

  constructor(options: EngineOptions) {
    const clock = lookingFirst(options.clock, () => this.#engine.loop.turn(0));
    this.#engine = new Engine({ ...options, clock });
    this.#engine.loop.attach();
  }

  setService(key: string, service: ForwardedService): void {
    this.#engine.setService(key, service);
  }

  removeService(key: string): void {
    this.#engine.removeService(key);
  }

  async listen(id: string, listening: Listening): Promise<number> {
    return this.#engine.listen(id, listening);
  }

  unlisten(id: string, endConnections: boolean): void {
    this.#engine.unlisten(id, endConnections);
  }

  async traffic(): Promise<TrafficReport> {
    return this.#engine.traffic();
  }

  async listeners(): Promise<ReadonlyMap<string, ListenerState>> {
    return this.#engine.listeners();
  }

  async outlook(
    protocol: Listening['protocol'],
    to: SocketAddress,
    client: string,
  ): Promise<Outlook | undefined> {
    return this.#engine.outlook(protocol, to, client);
  }

  async close(): Promise<void> {
    this.#engine.close();
  }
}

/** On a busy machine time may be up for what has long happened: that is looked at before it counts as missed. */
function lookingFirst(clock: Clock, look: () => void): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimeout(run, ms) {
      let isCancelled = false;
      const timer = clock.setTimeout(() => {
        look();
        if (!isCancelled) run();
      }, ms);
      return {
        cancel() {
          isCancelled = true;
          timer.cancel();
        },
      };
    },
  };
}
