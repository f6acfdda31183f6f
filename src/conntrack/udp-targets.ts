import { joinHostPort } from '../model/ip.ts';

/** A UDP service port as far as its flows are concerned. */
export interface UDPTarget {
  /** Cluster IP, external IPs and load balancer VIPs, canonical. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** 0 = none. */
  readonly nodePort: number;
  /** `ip:port` of every endpoint that serves, terminating ones included: flows to them are left alone. */
  readonly serving: ReadonlySet<string>;
}

/** One direction-less view of a conntrack entry: where it was sent to, and who answers. */
export interface UDPFlow {
  readonly destinationIP: string;
  readonly destinationPort: number;
  readonly answererIP: string;
  readonly answererPort: number;
}

const nobody: ReadonlySet<string> = new Set();

/**
 * Which UDP flows the service ports allow. Addresses and node ports that a change took away are remembered, with
 * nobody behind them, until `settle` says that their flows are gone: flows of a deleted Service must go, too.
 * Changes are numbered, so that those made during a pass over the flows wait for the next one.
 */
export class UDPTargets {
  readonly #targets = new Map<string, UDPTarget>();
  readonly #frontends = new Map<string, ReadonlySet<string>>();
  readonly #nodePorts = new Map<number, ReadonlySet<string>>();
  readonly #retired = new Map<string, number>();
  readonly #retiredPorts = new Map<number, number>();
  #changes = 0;
  #settled = 0;

  /** Sets or (without a target) removes what is behind a service port. */
  update(key: string, target: UDPTarget | undefined): void {
    const before = this.#targets.get(key);
    if (!before && !target) return;
    this.#changes++;
    if (before) this.#retire(before);
    if (!target) {
      this.#targets.delete(key);
      return;
    }
    this.#targets.set(key, target);
    for (const frontend of frontendsOf(target)) {
      this.#frontends.set(frontend, target.serving);
      this.#retired.delete(frontend);
    }
    if (target.nodePort === 0) return;
    this.#nodePorts.set(target.nodePort, target.serving);
    this.#retiredPorts.delete(target.nodePort);
  }

  /** How many changes there have been; what a pass that starts now covers. */
  get changes(): number {
    return this.#changes;
  }

  get isSettled(): boolean {
    return this.#settled === this.#changes;
  }

  /** The flows have been looked at since this many changes: what was retired by then may be forgotten. */
  settle(changes: number): void {
    this.#settled = changes;
    for (const [frontend, change] of this.#retired) {
      if (change > changes) continue;
      this.#retired.delete(frontend);
      this.#frontends.delete(frontend);
    }
    for (const [port, change] of this.#retiredPorts) {
      if (change > changes) continue;
      this.#retiredPorts.delete(port);
      this.#nodePorts.delete(port);
    }
  }

  /**
   * Whether the flow goes somewhere that its service port no longer sends traffic to. A port number that happens to
   * be a node port says nothing about flows to other machines: they just pass by.
   */
  isStale(flow: UDPFlow, isOwnAddress: (ip: string) => boolean): boolean {
    const answerer = joinHostPort(flow.answererIP, flow.answererPort);
    const destination = joinHostPort(flow.destinationIP, flow.destinationPort);
    const behindFrontend = this.#frontends.get(destination);
    if (behindFrontend) return !behindFrontend.has(answerer);
    const behindNodePort = this.#nodePorts.get(flow.destinationPort);
    return behindNodePort !== undefined && !behindNodePort.has(answerer) && isOwnAddress(flow.destinationIP);
  }

  #retire(target: UDPTarget): void {
    for (const frontend of frontendsOf(target)) {
      this.#frontends.set(frontend, nobody);
      this.#retired.set(frontend, this.#changes);
    }
    if (target.nodePort === 0) return;
    this.#nodePorts.set(target.nodePort, nobody);
    this.#retiredPorts.set(target.nodePort, this.#changes);
  }
}

function frontendsOf({ addresses, port }: UDPTarget): string[] {
  return addresses.map((address) => joinHostPort(address, port));
}
