import type { Clock, Timer } from '../lib/clock.ts';
import type { Sockets } from '../native/sockets.ts';
import { Admission, type Limits, type Occupancy } from './admission.ts';
import { ConnectionLog, type ConnectionReport } from './connection-log.ts';
import { EventLoop } from './event-loop.ts';
import type {
  BindingPage,
  ForwardedService,
  ForwarderOptions,
  ListenerState,
  Listening,
  Outlook,
  TrafficReport,
} from './forwarder.ts';
import { type Report, Reports } from './reports.ts';
import { ServiceHandle } from './service.ts';
import type { SocketAddress } from './socket-address.ts';
import { SplicePool } from './splice-pool.ts';
import { TCPListener } from './tcp-listener.ts';
import { type UDPContext, UDPListener } from './udp-listener.ts';

export interface EngineOptions extends ForwarderOptions {
  readonly sockets: Sockets;
  readonly limits: Limits;
  /** Set when several engines share the limits. */
  readonly occupancy?: Occupancy;
  readonly clock: Clock;
  readonly random: () => number;
  readonly report: (report: Report) => void;
}

interface OpenListener extends Listening {
  readonly listener: TCPListener | UDPListener;
}

/** Addresses that match every address of their family. */
const anyAddresses: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The size of the largest datagram. */
const scratchBytes = 65_536;
const pruneMs = 60_000;

/** The forwarder of one thread. It uses no promises, so it works in a thread that never returns to Node's event loop. */
export class Engine {
  /** The owner attaches or turns it. */
  readonly loop: EventLoop;
  readonly #context: UDPContext;
  readonly #random: () => number;
  readonly #admission: Admission;
  readonly #services = new Map<string, ServiceHandle>();
  readonly #listeners = new Map<string, OpenListener>();
  /** UDP listeners by service: their sessions depend on its endpoints. */
  readonly #datagramListeners = new Map<string, Set<UDPListener>>();
  /** Closed listeners that still have open connections. */
  readonly #retired = new Set<TCPListener>();
  readonly #log = new ConnectionLog();
  #pruning: Timer | undefined;

  constructor(options: EngineOptions) {
    const { sockets, clock, random, dialTimeouts, udpIdleMs, limits } = options;
    const reports = new Reports(clock, options.report);
    this.#random = random;
    this.#admission = new Admission(limits, options.occupancy);
    this.loop = new EventLoop(sockets);
    this.#context = {
      sockets,
      loop: this.loop,
      scratch: new Uint8Array(new ArrayBuffer(scratchBytes)),
      splices: new SplicePool(sockets, this.#admission),
      clock,
      dialTimeouts,
      idleMs: udpIdleMs,
      report: (problem, detail) => reports.add(problem, detail),
      log: this.#log,
    };
    this.#schedulePruning();
  }

  setService(key: string, service: ForwardedService): void {
    this.#service(key).set(service);
    for (const listener of this.#datagramListeners.get(key) ?? []) listener.endpointsChanged();
  }

  removeService(key: string): void {
    this.#services.get(key)?.remove();
    this.#services.delete(key);
  }

  /** Starts listening and returns the port; throws when the address is not available. */
  listen(id: string, listening: Listening): number {
    const { service, protocol, at } = listening;
    if (this.#listeners.has(id)) throw new Error(`there is a listener ${id} already`);
    const Listener = protocol === 'TCP' ? TCPListener : UDPListener;
    const listener = this.#admission.listen(
      () => new Listener(this.#context, this.#service(service), this.#admission, listening),
    );
    this.#listeners.set(id, { ...listening, listener, at: { ip: at.ip, port: listener.port } });
    if (listener instanceof UDPListener) {
      const others = this.#datagramListeners.get(service) ?? new Set();
      this.#datagramListeners.set(service, others.add(listener));
    }
    return listener.port;
  }

  unlisten(id: string, endConnections: boolean): void {
    const listener = this.#listeners.get(id)?.listener;
    if (!listener) return;
    this.#listeners.delete(id);
    listener.close(endConnections);
    this.#admission.unlisten();
    if (listener instanceof UDPListener) this.#forgetDatagrams(listener);
    else if (listener.hasConnections) this.#retired.add(listener);
  }

  traffic(): TrafficReport {
    return new Map([...this.#services].map(([key, { traffic }]) => [key, traffic]));
  }

  /** Which connections got which endpoint since the last call. */
  connections(): ConnectionReport {
    const listeners = [...[...this.#listeners.values()].map(({ listener }) => listener), ...this.#retired];
    return this.#log.take(() => listeners.flatMap((listener) => listener.connections()));
  }

  listeners(): ReadonlyMap<string, ListenerState> {
    return new Map([...this.#listeners].map(([id, open]) => [id, this.#stateOf(open)]));
  }

  /** Returns undefined when no listener accepts traffic to this address. */
  outlook(protocol: Listening['protocol'], to: SocketAddress, client: string): Outlook | undefined {
    const open = [...this.#listeners.values()].find(
      ({ at, ...listening }) =>
        listening.protocol === protocol &&
        at.port === to.port &&
        (at.ip === to.ip || (anyAddresses.has(at.ip) && at.ip.includes(':') === to.ip.includes(':'))),
    );
    return open && { listener: this.#stateOf(open), ...open.listener.service.outlook(client) };
  }

  bindings(key: string, start?: number): BindingPage {
    return this.#services.get(key)?.balancer.bindings(start) ?? { bindings: [], next: undefined };
  }

  close(): void {
    this.#pruning?.cancel();
    for (const { listener } of this.#listeners.values()) listener.close(true);
    for (const listener of this.#retired) listener.close(true);
    this.#listeners.clear();
    this.#retired.clear();
    this.#context.splices.close();
    this.loop.close();
  }

  #stateOf({ listener, ...listening }: OpenListener): ListenerState {
    return { ...listening, ...listener.service.balancer.settings() };
  }

  #forgetDatagrams(listener: UDPListener): void {
    const { key } = listener.service;
    const others = this.#datagramListeners.get(key);
    others?.delete(listener);
    if (others?.size === 0) this.#datagramListeners.delete(key);
  }

  #service(key: string): ServiceHandle {
    const known = this.#services.get(key);
    if (known) return known;
    const service = new ServiceHandle(key, { clock: this.#context.clock, random: this.#random });
    this.#services.set(key, service);
    return service;
  }

  #schedulePruning(): void {
    this.#pruning = this.#context.clock.setTimeout(() => {
      for (const service of this.#services.values()) service.balancer.prune();
      this.#log.prune();
      for (const listener of this.#retired) if (!listener.hasConnections) this.#retired.delete(listener);
      this.#schedulePruning();
    }, pruneMs);
  }
}
