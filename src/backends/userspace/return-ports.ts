import type { NodeForwarder } from '../../forwarder/open.ts';

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
  readonly TCP: number;
  readonly UDP: number;
  readonly #release: () => void;

  constructor(claim: NodeForwarder['claim'], ip: string) {
    const tcp = claim('TCP', { ip, port: 0 });
    const udp = claim('UDP', { ip, port: 0 });
    this.TCP = tcp.port;
    this.UDP = udp.port;
    this.#release = () => {
      tcp.release();
      udp.release();
    };
  }

  release(): void {
    this.#release();
  }
}
