import type { InterfaceAddresses } from '../../kernel/route/addresses.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import { type Family, familyOf, isLinkLocalIPv6, joinHostPort } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { distinctFrontends, type Frontend, lostFrontends } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { AddressWatch } from '../address-watch.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { type AddressRow, addressRow, refusalNote, renderAddressTable } from './address-table.ts';
import { frontendOfListening, type Listening, listeningName, listeningsOf } from './direct-places.ts';
import type { ProxySocket, ProxySockets } from './proxy-sockets.ts';
import { Retry } from './retry.ts';
import type { UserspaceSettings } from './settings.ts';

export interface DirectBackendOptions {
  readonly settings: UserspaceSettings;
  readonly sockets: ProxySockets;
  readonly addresses: Pick<InterfaceAddresses, 'list' | 'watch'>;
  /** Why packets cannot be captured. */
  readonly reason: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly requestFullSync: () => void;
  readonly onClose: () => void;
}

/** A service port as it is served now. */
export interface DirectlyServed {
  readonly plan: ServicePlan;
  /** By what they listen for. */
  readonly sockets: ReadonlyMap<string, ProxySocket>;
  readonly rows: readonly AddressRow[];
}

/**
 * Userspace mode where packets cannot be captured, for want of privileges or of nftables. It listens where it may:
 * at node ports, at service addresses that are this node's own, and at loopback in place of cluster IPs.
 */
export class DirectBackend implements Backend {
  readonly family: Family;
  /** No packet is rewritten, so there is nothing for conntrack to remember wrongly. */
  readonly flows = 'none' as const;
  readonly #options: DirectBackendOptions;
  readonly #served = new Map<string, DirectlyServed>();
  readonly #retry: Retry;
  #isAnnounced = false;
  #watch: AddressWatch | undefined;

  constructor(options: DirectBackendOptions) {
    this.#options = options;
    this.family = options.settings.family;
    this.#retry = new Retry(options.clock, options.settings.retryMs, options.requestFullSync);
  }

  async sync({ plans, changed }: SyncRequest): Promise<SyncResult> {
    this.#watch ??= this.#watchAddresses();
    const sorted = [
      ...new Set(changed === 'all' ? [...this.#served.keys(), ...plans.keys()] : changed),
    ].sort();
    // What is given up is free for others in the same sync, whatever their order.
    for (const key of sorted) this.#giveUp(key, plans.get(key));
    const addresses = await this.#options.addresses.list();
    const told: AddressRow[] = [];
    for (const key of sorted) {
      const plan = plans.get(key);
      if (!plan) continue;
      const before = this.#served.get(key);
      const served = await this.#serve(key, plan, addresses);
      this.#served.set(key, served);
      if (JSON.stringify(served.rows) !== JSON.stringify(before?.rows)) told.push(...served.rows);
    }
    this.#tell(told);
    return { refused: [] };
  }

  /** Why packets are not captured. */
  get reason(): string {
    return this.#options.reason;
  }

  /** Where every service port is served. */
  addressRows(): AddressRow[] {
    return [...this.#served.values()].flatMap(({ rows }) => rows);
  }

  /** What is served now, to compare with. */
  served(): ReadonlyMap<string, DirectlyServed> {
    return new Map(this.#served);
  }

  async close(): Promise<void> {
    this.#retry.cancel();
    this.#watch?.close();
    this.#options.onClose();
  }

  /** Any address of the family may be a service's; nobody can listen at a link-local one without naming the link. */
  #watchAddresses(): AddressWatch {
    const { addresses, clock, logger, requestFullSync } = this.#options;
    const isRelevant = (ip: string): boolean => familyOf(ip) === this.family && !isLinkLocalIPv6(ip);
    return new AddressWatch({
      addresses,
      relevant: (listed) => listed.filter(isRelevant),
      clock,
      logger,
      onChange: requestFullSync,
    });
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

  async #serve(key: string, plan: ServicePlan, addresses: readonly string[]): Promise<DirectlyServed> {
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
        rows.push(await this.#listen(plan, listening, before, sockets));
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
      this.#retry.schedule();
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

  #tell(rows: readonly AddressRow[]): void {
    const { logger, reason } = this.#options;
    if (!this.#isAnnounced) {
      logger.info('Service addresses are not captured; services are reachable at the addresses told below', {
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
