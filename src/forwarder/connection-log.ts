import { endpointName } from './forwarder.ts';
import { decodeAddress } from './socket-address.ts';

/** A TCP connection or UDP session that got an endpoint. */
export interface ForwardedConnection {
  /** Key of the service. */
  readonly service: string;
  /** `ip:port`. */
  readonly client: string;
  readonly endpoint: string;
}

export interface ConnectionReport {
  /** Some of what happened since the last report is unknown; this one has all connections that are open. */
  readonly startsOver: boolean;
  /** Otherwise those since the last report. */
  readonly connections: readonly ForwardedConnection[];
}

/** More connections between two reports are not recorded. */
const maxRecorded = 50_000;

/** Records which endpoints new connections get, while somebody asks. */
export class ConnectionLog {
  /** Undefined while nothing is recorded. */
  #recorded: ForwardedConnection[] | undefined;
  #isAsked = false;

  add(service: string, client: Uint8Array, endpoint: string): void {
    if (!this.#recorded) return;
    if (this.#recorded.length < maxRecorded) this.#recorded.push(forwarded(service, client, endpoint));
    else this.#recorded = undefined;
  }

  /** What was recorded since the last call. `open` lists the connections that are open. */
  take(open: () => readonly ForwardedConnection[]): ConnectionReport {
    const recorded = this.#recorded;
    this.#recorded = [];
    this.#isAsked = true;
    return recorded
      ? { startsOver: false, connections: recorded }
      : { startsOver: true, connections: open() };
  }

  /** Ends recording when nobody has asked since the last call. */
  prune(): void {
    if (!this.#isAsked) this.#recorded = undefined;
    this.#isAsked = false;
  }
}

/** `client` is a sockaddr. */
export function forwarded(service: string, client: Uint8Array, endpoint: string): ForwardedConnection {
  return { service, client: endpointName(decodeAddress(client)), endpoint };
}
