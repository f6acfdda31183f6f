import { messageOf } from '../../lib/thrown.ts';
import { type Family, familyOf, isLinkLocalIPv6, joinHostPort } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { distinctFrontends, type Frontend, lostFrontends } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { AddressSource, NodeAddresses } from '../address-watch.ts';
import type { Driver, FullWrite, Wanted, WantedChanges, Written } from '../driver.ts';
import type { DirectPlace } from '../packet-rules.ts';
import { type AddressRow, addressRow, refusalNote, renderAddressTable } from './address-table.ts';
import { frontendOfListening, type Listening, listeningName, listeningsOf } from './direct-places.ts';
import type { ProxySocket, ProxySockets } from './proxy-sockets.ts';
import type { UserspaceSettings } from './settings.ts';

export interface DirectOptions {
  readonly settings: UserspaceSettings;
  readonly sockets: ProxySockets;
  /** Why packets cannot be captured. */
  readonly reason: string;
  readonly logger: Logger;
  readonly onClose: () => void;
}

/** A service port as it is served now. */
export interface DirectlyServed {
  readonly plan: ServicePlan;
  /** By the name of the listener. */
  readonly sockets: ReadonlyMap<string, ProxySocket>;
  readonly rows: readonly AddressRow[];
}

/** Any address of the family may be a service's, except link-local ones, at which one listens only by naming the link. */
export function listenableAddresses(source: AddressSource, family: Family): NodeAddresses {
  const isRelevant = (ip: string): boolean => familyOf(ip) === family && !isLinkLocalIPv6(ip);
  return { source, relevant: (listed) => listed.filter(isRelevant) };
}

/**
 * Userspace mode where packets cannot be captured, for want of privileges or of nftables. It listens where it may:
 * at node ports, at service addresses that are this node's own, and at loopback in place of cluster IPs.
 */
export class DirectDriver implements Driver<'listening'> {
  readonly subject = 'listeners';
  readonly #options: DirectOptions;
  readonly #served = new Map<string, DirectlyServed>();
  #isAnnounced = false;

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  writeChanges(_: 'listening', wanted: WantedChanges): Promise<Written<'listening'>> {
    return this.#write(wanted.changed, wanted);
  }

  writeAll(wanted: Wanted): FullWrite<'listening'> {
    const attempt = () => this.#write([...this.#served.keys(), ...wanted.plans.keys()], wanted);
    return { attempt, remedy: async () => undefined };
  }

  prepareAlone(plan: ServicePlan): void {
    for (const frontend of distinctFrontends(plan)) {
      if (!obstacleTo(frontend)) listeningsOf(frontend, [], this.#options.settings);
    }
  }

  /** Nothing is written that anybody could refuse as a whole. */
  isRefusal(): boolean {
    return false;
  }

  /** Why packets are not captured. */
  get reason(): string {
    return this.#options.reason;
  }

  /** Where every service port is served. */
  addressRows(): AddressRow[] {
    return [...this.#served.values()].flatMap(({ rows }) => rows);
  }

  /** Every frontend, and where it is served. */
  places(): DirectPlace[] {
    return [...this.#served].flatMap(([key, { rows }]) =>
      rows.map(({ frontend, address, note }) => ({ key, frontend, address, note })),
    );
  }

  /** What is served now, to compare with. */
  get served(): ReadonlyMap<string, DirectlyServed> {
    return new Map(this.#served);
  }

  close(): void {
    this.#options.onClose();
  }

  async #write(keys: Iterable<string>, { plans, addresses }: Wanted): Promise<Written<'listening'>> {
    const sorted = [...new Set(keys)].sort();
    // Released ports are free for other service ports in the same sync, in any order.
    for (const key of sorted) this.#giveUp(key, plans.get(key));
    const changed: AddressRow[] = [];
    const failures: string[] = [];
    for (const key of sorted) {
      const plan = plans.get(key);
      if (!plan) continue;
      const before = this.#served.get(key);
      const served = await this.#serve(key, plan, addresses, failures);
      this.#served.set(key, served);
      if (JSON.stringify(served.rows) !== JSON.stringify(before?.rows)) changed.push(...served.rows);
    }
    this.#announce(changed);
    const [retry] = failures;
    return { belief: 'listening', failures: new Map(), ...(retry !== undefined && { retry }) };
  }

  /** Closes the sockets of a service port that is gone, and those for frontends that it no longer has. */
  #giveUp(key: string, plan: ServicePlan | undefined): void {
    const before = this.#served.get(key);
    if (!before) return;
    const names = new Set(plan ? distinctFrontends(plan).map(({ name }) => name) : []);
    const kept = [...before.sockets].filter(([id, socket]) => {
      if (names.has(frontendOfListening(id))) return true;
      this.#options.sockets.close(socket);
      return false;
    });
    if (plan) this.#served.set(key, { ...before, sockets: new Map(kept) });
    else this.#served.delete(key);
  }

  /** Listens where it may; reasons why it cannot, and should try again, go to `failures`. */
  async #serve(
    key: string,
    plan: ServicePlan,
    addresses: readonly string[],
    failures: string[],
  ): Promise<DirectlyServed> {
    const before = this.#served.get(key)?.sockets ?? new Map<string, ProxySocket>();
    const sockets = new Map<string, ProxySocket>();
    const rows: AddressRow[] = [];
    for (const frontend of distinctFrontends(plan)) {
      const { name } = frontend;
      const obstacle = obstacleTo(frontend);
      if (obstacle) {
        rows.push(addressRow(plan, name, '', obstacle));
        continue;
      }
      for (const listening of listeningsOf(frontend, addresses, this.#options.settings)) {
        rows.push(await this.#listen(plan, listening, before, sockets, failures));
      }
      if (!rows.some((row) => row.frontend === name))
        rows.push(addressRow(plan, name, '', this.#uncaptured()));
    }
    for (const [{ name }, owner] of lostFrontends(plan)) {
      rows.push(addressRow(plan, name, '', `belongs to service port ${owner}`));
    }
    for (const [id, socket] of before) if (!sockets.has(id)) this.#options.sockets.close(socket);
    return { plan, sockets, rows };
  }

  async #listen(
    plan: ServicePlan,
    listening: Listening,
    before: ReadonlyMap<string, ProxySocket>,
    sockets: Map<string, ProxySocket>,
    failures: string[],
  ): Promise<AddressRow> {
    const { frontend, list, places } = listening;
    const { name } = frontend;
    const id = listeningName(listening);
    let failure = '';
    let socket = before.get(id);
    if (socket) this.#options.sockets.setEndpoints(plan, list);
    for (const place of places) {
      if (socket) break;
      try {
        socket = await this.#options.sockets.open(plan, list, place);
      } catch (error) {
        failure = `cannot listen at ${joinHostPort(place.ip, place.port)}: ${messageOf(error)}`;
      }
    }
    if (!socket) {
      failures.push(failure);
      return addressRow(plan, name, '', failure);
    }
    sockets.set(id, socket);
    const address = joinHostPort(socket.ip, socket.port);
    const isItself = frontend.kind === 'node port' || socket.ip === frontend.address;
    return addressRow(plan, name, address, isItself ? '' : this.#uncaptured());
  }

  #uncaptured(): string {
    return `not captured: ${this.#options.reason}`;
  }

  #announce(rows: readonly AddressRow[]): void {
    const { logger, reason } = this.#options;
    if (!this.#isAnnounced) {
      logger.info('Service addresses are not captured; services are reachable at the addresses below', {
        reason,
      });
    }
    this.#isAnnounced = true;
    if (rows.length > 0) logger.info('Services and their addresses', { table: renderAddressTable(rows) });
  }
}

/** Why nothing listens for a frontend, wherever that would be; empty when something does. */
function obstacleTo(frontend: Frontend): string {
  if (frontend.protocol === 'SCTP') return 'protocol SCTP is not supported';
  if (frontend.sourceRanges.length > 0) {
    return 'not served: its source ranges can only be kept where packets are captured';
  }
  return refusalNote(frontend);
}
