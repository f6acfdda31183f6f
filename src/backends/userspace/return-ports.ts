import type { NodeForwarder, PortClaim } from '../../forwarder/open.ts';

/**
 * Ports of the node at which answers arrive that endpoints send to clients' addresses: the rules write them into the
 * packets on their way here, and take them out again. They are held, so that no connection of this node has them.
 */
export interface ReturnPorts {
  readonly TCP: number;
  readonly UDP: number;
}

/** Holds a port of each protocol at the address that packets are sent to. Throws SystemError when there is none. */
export class HeldReturnPorts implements ReturnPorts {
  readonly #tcp: PortClaim;
  readonly #udp: PortClaim;

  constructor(claim: NodeForwarder['claim'], ip: string) {
    this.#tcp = claim('TCP', { ip, port: 0 });
    try {
      this.#udp = claim('UDP', { ip, port: 0 });
    } catch (error) {
      this.#tcp.release();
      throw error;
    }
  }

  get TCP(): number {
    return this.#tcp.port;
  }

  get UDP(): number {
    return this.#udp.port;
  }

  release(): void {
    this.#tcp.release();
    this.#udp.release();
  }
}
