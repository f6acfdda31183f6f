import type { NodeForwarder } from '../../forwarder/open.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { servableFrontends } from './frontends.ts';
import { keptSources, listOf, type Outlet, outletsOfAll } from './outlets.ts';
import { PortClaims } from './port-claims.ts';
import { elementsOf, type PortalElement } from './portals/elements.ts';
import type { ProxySocket, ProxySockets } from './proxy-sockets.ts';
import type { UserspaceSettings } from './settings.ts';

export interface PlacingOptions {
  readonly settings: UserspaceSettings;
  readonly sockets: ProxySockets;
  readonly claim: NodeForwarder['claim'];
}

/** No later attempt can succeed. */
export class UnsupportedProtocolError extends Error {
  constructor() {
    super('protocol SCTP is not supported in userspace mode');
  }
}

/** A service port as it is served now. */
export interface Served {
  readonly plan: ServicePlan;
  /** What its sockets were opened for: other addresses get other sockets. */
  readonly signature: string;
  readonly sockets: ReadonlyMap<Outlet, ProxySocket>;
  readonly elements: readonly PortalElement[];
  readonly problems: readonly Error[];
}

/** The result of placing one service port, and what to remove and close once it is in effect. */
export interface Step {
  readonly next: Served | undefined;
  readonly removed: readonly PortalElement[];
  readonly closing: readonly ProxySocket[];
}

/** Determines what each service port gets: ports of the node, proxy sockets, and so its elements. */
export class Placing {
  readonly #options: PlacingOptions;
  readonly #claims: PortClaims;

  constructor(options: PlacingOptions) {
    this.#options = options;
    this.#claims = new PortClaims(options.settings, options.claim);
  }

  /** Gives up what a service port no longer asks for, so that others can have it. */
  giveUp(key: string, plan: ServicePlan | undefined): void {
    this.#claims.retain(key, new Set(plan ? servableFrontends(plan).map(({ name }) => name) : []));
  }

  /** Service ports that hold a port of the node, served or not. */
  keys(): Iterable<string> {
    return this.#claims.keys();
  }

  close(): void {
    this.#claims.close();
  }

  /** Opens what a service port needs from now on. Nothing that it had is closed yet. */
  async step(
    key: string,
    plan: ServicePlan | undefined,
    before: Served | undefined,
    addresses: readonly string[],
  ): Promise<Step> {
    const removed = before?.elements ?? [];
    if (!plan) return { next: undefined, removed, closing: [...(before?.sockets.values() ?? [])] };
    const problems: Error[] = [];
    const frontends = this.#frontends(key, plan, addresses, problems);
    const signature = signatureOf(plan);
    const sockets = await this.#sockets({ plan, signature }, frontends, before, problems);
    const proxyPorts = new Map([...sockets].map(([outlet, { port }]) => [outlet, port] as const));
    const elements = elementsOf({ plan, frontends, proxyPorts }, this.#options.settings);
    const kept = new Set([...sockets.values()]);
    const closing = [...(before?.sockets.values() ?? [])].filter((socket) => !kept.has(socket));
    return { next: { plan, signature, sockets, elements, problems }, removed, closing };
  }

  /** The elements of a service port that gets all that it asks for. Opens nothing. */
  elementsAlone(plan: ServicePlan): PortalElement[] {
    const frontends = servableFrontends(plan);
    const { settings } = this.#options;
    const proxyPorts = new Map([...outletsOfAll(frontends, settings)].map((outlet) => [outlet, 0]));
    return elementsOf({ plan, frontends, proxyPorts }, settings);
  }

  /** The frontends that the service port can have: those that no other program uses. */
  #frontends(key: string, plan: ServicePlan, addresses: readonly string[], problems: Error[]): Frontend[] {
    if (plan.port.protocol === 'SCTP') {
      problems.push(new UnsupportedProtocolError());
      return [];
    }
    return servableFrontends(plan).filter((frontend) => {
      try {
        this.#claims.hold(key, frontend, addresses);
        return true;
      } catch (error) {
        problems.push(new Error(`cannot hold ${frontend.name}: ${messageOf(error)}`, { cause: error }));
        return false;
      }
    });
  }

  async #sockets(
    { plan, signature }: Pick<Served, 'plan' | 'signature'>,
    frontends: readonly Frontend[],
    before: Served | undefined,
    problems: Error[],
  ): Promise<Map<Outlet, ProxySocket>> {
    const isNewWanted = before?.signature !== signature;
    const open = new Map<Outlet, ProxySocket>();
    for (const outlet of outletsOfAll(frontends, this.#options.settings)) {
      const known =
        before?.plan.port.protocol === plan.port.protocol ? before.sockets.get(outlet) : undefined;
      try {
        open.set(
          outlet,
          known && !isNewWanted ? this.#kept(plan, outlet, known) : await this.#opened(plan, outlet),
        );
      } catch (error) {
        // Better the socket that it had than none.
        if (known) open.set(outlet, this.#kept(plan, outlet, known));
        else problems.push(new Error(`no proxy socket: ${messageOf(error)}`, { cause: error }));
      }
    }
    return open;
  }

  #kept(plan: ServicePlan, outlet: Outlet, socket: ProxySocket): ProxySocket {
    this.#options.sockets.setEndpoints(plan, listOf(outlet));
    return socket;
  }

  #opened(plan: ServicePlan, outlet: Outlet): Promise<ProxySocket> {
    const { sockets, settings } = this.#options;
    const kept = keptSources(outlet, plan.port.clusterIP, settings);
    return sockets.open(plan, listOf(outlet), { ip: settings.hostIP, port: 'pool', kept });
  }
}

/** A service port gets new sockets when this changes. Endpoints and the length of affinity do not count. */
export function signatureOf(plan: ServicePlan): string {
  const names = servableFrontends(plan).map(({ name }) => name);
  return JSON.stringify([names, plan.port.affinitySeconds > 0]);
}
