import { type Choice, choiceFor } from '../../forwarder/balancer.ts';
import type { Forwarder, KeptSources } from '../../forwarder/forwarder.ts';
import type { PortPool } from '../../forwarder/port-pool.ts';
import type { SocketAddress } from '../../forwarder/socket-address.ts';
import { hasCode } from '../../lib/thrown.ts';
import type { ServicePort } from '../../model/service-port.ts';
import type { EndpointList, ServicePlan } from '../../plan/service-plan.ts';

export interface ProxySocketsOptions {
  readonly forwarder: Forwarder;
  readonly pool: PortPool;
  readonly choice: Choice;
}

/** A listening socket of one outlet of a service port. */
export interface ProxySocket {
  readonly id: string;
  readonly service: string;
  readonly ip: string;
  readonly port: number;
  /** Taken from the pool, and to be given back. */
  readonly isPooled: boolean;
}

/** Where a socket may listen: at a port of its own, or at one from the pool. */
export interface Place {
  readonly ip: string;
  readonly port: number | 'pool';
  /** The clients whose address endpoints see. */
  readonly kept?: KeptSources | undefined;
}

/** The name of a list of endpoints among the forwarder's services, which are of both families. */
export function serviceName({ key, family }: ServicePort, list: EndpointList): string {
  return list === 'cluster' ? `${key} ${family}` : `${key} ${family} local`;
}

/** The service port of a name that `serviceName` made. */
export function servicePortOf(name: string): Pick<ServicePort, 'key' | 'family'> | undefined {
  const [, key, family] = /^(\S+) (IPv4|IPv6)(?: local)?$/.exec(name) ?? [];
  if (key === undefined) return undefined;
  return { key, family: family === 'IPv6' ? 'IPv6' : 'IPv4' };
}

/** Opens and closes the sockets through which services are served. */
export class ProxySockets {
  readonly #options: ProxySocketsOptions;
  /** Sockets that each of the forwarder's services has. */
  readonly #uses = new Map<string, number>();
  #opened = 0;

  constructor(options: ProxySocketsOptions) {
    this.#options = options;
  }

  /** Tells the forwarder where connections of a service port go from now on. */
  setEndpoints(plan: ServicePlan, list: EndpointList): void {
    const { forwarder, choice } = this.#options;
    const endpoints = plan[list].map(addressOf);
    const chosen = new Set(plan[list]);
    const draining = plan.endpoints
      .filter((endpoint) => endpoint.serving && !chosen.has(endpoint))
      .map(addressOf);
    const { affinitySeconds } = plan.port;
    forwarder.setService(serviceName(plan.port, list), {
      endpoints,
      draining,
      affinitySeconds,
      choice: choiceFor(plan.balance, choice),
    });
  }

  /** Opens a socket for the endpoints of the plan; rejects when the place, or every port of the pool, is taken. */
  async open(plan: ServicePlan, list: EndpointList, place: Place): Promise<ProxySocket> {
    const { protocol } = plan.port;
    if (protocol === 'SCTP') throw new Error('protocol SCTP is not supported');
    const service = serviceName(plan.port, list);
    const id = `${service} #${this.#opened++}`;
    const isPooled = place.port === 'pool';
    const listen = (port: number): Promise<number> =>
      this.#options.forwarder.listen(id, {
        service,
        protocol,
        at: { ip: place.ip, port },
        ...(place.kept && { kept: place.kept }),
      });
    this.setEndpoints(plan, list);
    try {
      const port = place.port === 'pool' ? await this.#listenAnywhere(listen) : await listen(place.port);
      this.#uses.set(service, (this.#uses.get(service) ?? 0) + 1);
      return { id, service, ip: place.ip, port, isPooled };
    } catch (error) {
      if (!this.#uses.has(service)) this.#options.forwarder.removeService(service);
      throw error;
    }
  }

  /** Stops listening; open TCP connections go on. A service without sockets is forgotten. */
  close(socket: ProxySocket): void {
    const { forwarder, pool } = this.#options;
    forwarder.unlisten(socket.id, false);
    if (socket.isPooled) pool.release(socket.port);
    const uses = (this.#uses.get(socket.service) ?? 1) - 1;
    this.#uses.set(socket.service, uses);
    if (uses > 0) return;
    this.#uses.delete(socket.service);
    forwarder.removeService(socket.service);
  }

  /** A port of the pool may be in use by another program: it is left alone and the next one tried. */
  async #listenAnywhere(listen: (port: number) => Promise<number>): Promise<number> {
    const { pool } = this.#options;
    const taken: number[] = [];
    try {
      for (;;) {
        const port = pool.allocate();
        try {
          return await listen(port);
        } catch (error) {
          taken.push(port);
          if (taken.length >= pool.attempts || !hasCode(error, 'EADDRINUSE')) throw error;
        }
      }
    } finally {
      for (const port of taken) pool.release(port);
    }
  }
}

function addressOf({ ip, port }: SocketAddress): SocketAddress {
  return { ip, port };
}
