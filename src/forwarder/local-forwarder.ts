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
    this.#engine = new Engine(options);
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
