import type { ServerResponse } from 'node:http';

/** How the response to one request fails. */
export type Fault =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfter?: number;
    }
  /** The server cuts the connection without a response. */
  | { readonly kind: 'reset' }
  /** The server never responds. */
  | { readonly kind: 'hang' }
  /** Status 200, then meaningless bytes. */
  | { readonly kind: 'garbage' }
  /** The server cuts the connection after this many bytes of the body. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** The response stops after this many bytes; the connection stays open. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  /** The body arrives in small pieces. */
  | { readonly kind: 'trickle'; readonly bytes: number; readonly everyMs: number };

/** The properties by which a fault matches a request. */
export interface FaultTarget {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

interface Planned {
  readonly fault: Fault;
  readonly match: (target: FaultTarget) => boolean;
}

/** Faults waiting for a request; each happens once. */
export class FaultPlan {
  #planned: Planned[] = [];

  /** The next request that matches gets this fault. */
  next(fault: Fault, match: (target: FaultTarget) => boolean = () => true): void {
    this.#planned.push({ fault, match });
  }

  take(target: FaultTarget): Fault | undefined {
    const found = this.#planned.find(({ match }) => match(target));
    this.#planned = this.#planned.filter((planned) => planned !== found);
    return found?.fault;
  }

  clear(): void {
    this.#planned = [];
  }

  get pending(): number {
    return this.#planned.length;
  }
}

/** Where a response body is written; a fault may change what arrives. */
export interface Outlet {
  write(bytes: Buffer): void;
  end(): void;
  /** Cuts the connection. */
  destroy(): void;
  onClose(run: () => void): void;
}

export function outletFor(response: ServerResponse, fault: Fault | undefined): Outlet {
  if (fault?.kind === 'cut' || fault?.kind === 'stall') return new CappedOutlet(response, fault);
  if (fault?.kind === 'trickle') return new TricklingOutlet(response, fault.bytes, fault.everyMs);
  return new PlainOutlet(response);
}

class PlainOutlet implements Outlet {
  readonly response: ServerResponse;

  constructor(response: ServerResponse) {
    this.response = response;
  }

  write(bytes: Buffer): void {
    if (!this.response.destroyed) this.response.write(bytes);
  }

  end(): void {
    this.response.end();
  }

  destroy(): void {
    this.response.destroy();
  }

  onClose(run: () => void): void {
    this.response.on('close', run);
  }
}

class CappedOutlet extends PlainOutlet {
  readonly #cut: boolean;
  #left: number;

  constructor(
    response: ServerResponse,
    fault: { readonly kind: 'cut' | 'stall'; readonly afterBytes: number },
  ) {
    super(response);
    this.#cut = fault.kind === 'cut';
    this.#left = fault.afterBytes;
  }

  override write(bytes: Buffer): void {
    const sent = bytes.subarray(0, this.#left);
    this.#left -= sent.length;
    if (sent.length > 0 && !this.response.destroyed) this.response.write(sent);
    // The bytes must be sent first, or the client would see only the closed connection.
    if (this.#left === 0 && this.#cut) setImmediate(() => this.destroy());
  }

  override end(): void {
    if (this.#left > 0) super.end();
  }
}

class TricklingOutlet extends PlainOutlet {
  readonly #bytes: number;
  readonly #timer: NodeJS.Timeout;
  #waiting = Buffer.alloc(0);
  #ending = false;

  constructor(response: ServerResponse, bytes: number, everyMs: number) {
    super(response);
    this.#bytes = bytes;
    this.#timer = setInterval(() => this.#drip(), everyMs);
    response.on('close', () => clearInterval(this.#timer));
  }

  override write(bytes: Buffer): void {
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
  }

  override end(): void {
    this.#ending = true;
  }

  #drip(): void {
    const drop = this.#waiting.subarray(0, this.#bytes);
    this.#waiting = this.#waiting.subarray(this.#bytes);
    if (drop.length > 0 && !this.response.destroyed) this.response.write(drop);
    if (this.#ending && this.#waiting.length === 0) super.end();
  }
}
