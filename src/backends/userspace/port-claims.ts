import type { NodeForwarder, PortClaim } from '../../forwarder/open.ts';

import { joinHostPort } from '../../model/ip.ts';
import { nodePortIPs } from '../../model/node-port-addresses.ts';
import type { Frontend } from '../../plan/frontend.ts';
import { anyAddress } from './frontends.ts';
import type { UserspaceSettings } from './settings.ts';

interface Wanted {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly ip: string;
  readonly port: number;
}

/**
 * Holds the ports that captured frontends have on this node, so that no other program listens there in vain: node
 * ports, and service ports at the node's own addresses.
 */
export class PortClaims {
  readonly #settings: UserspaceSettings;
  readonly #claim: NodeForwarder['claim'];
  /** By service port key, and then by the name of its frontend. */
  readonly #held = new Map<string, Map<string, Map<string, PortClaim>>>();

  constructor(settings: UserspaceSettings, claim: NodeForwarder['claim']) {
    this.#settings = settings;
    this.#claim = claim;
  }

  /**
   * Holds what a service port's frontend needs at the addresses that the node has now, and nothing else. Throws when
   * another program has it.
   */
  hold(key: string, frontend: Frontend, interfaceAddresses: readonly string[]): void {
    const wanted = new Map(this.#wanted(frontend, interfaceAddresses).map((claim) => [claim.name, claim]));
    const held = this.#heldFor(key, frontend.name);
    for (const [name, claim] of held) {
      if (wanted.has(name)) continue;
      claim.release();
      held.delete(name);
    }
    for (const [name, { protocol, ip, port }] of wanted) {
      if (!held.has(name)) held.set(name, this.#claim(protocol, { ip, port }));
    }
  }

  /** Service ports that hold something, served or not: a write that failed leaves them what they hold. */
  keys(): Iterable<string> {
    return this.#held.keys();
  }

  /** Gives up what the service port holds for frontends that are not among these. */
  retain(key: string, frontends: ReadonlySet<string>): void {
    const ofKey = this.#held.get(key);
    if (!ofKey) return;
    for (const [frontend, held] of ofKey) {
      if (frontends.has(frontend)) continue;
      for (const claim of held.values()) claim.release();
      ofKey.delete(frontend);
    }
    if (ofKey.size === 0) this.#held.delete(key);
  }

  close(): void {
    for (const key of [...this.#held.keys()]) this.retain(key, new Set());
  }

  #heldFor(key: string, frontend: string): Map<string, PortClaim> {
    const ofKey = this.#held.get(key) ?? new Map<string, Map<string, PortClaim>>();
    this.#held.set(key, ofKey);
    const held = ofKey.get(frontend) ?? new Map<string, PortClaim>();
    ofKey.set(frontend, held);
    return held;
  }

  #wanted(frontend: Frontend, interfaceAddresses: readonly string[]): Wanted[] {
    const { kind, address: ip, port, protocol } = frontend;
    if (protocol === 'SCTP') return [];
    const { family, nodePortAddresses } = this.#settings;
    const at = (address: string): Wanted => ({
      name: `${joinHostPort(address, port)}/${protocol}`,
      protocol,
      ip: address,
      port,
    });
    if (kind !== 'node port') return interfaceAddresses.includes(ip) ? [at(ip)] : [];
    if (nodePortAddresses.matchAll) return [at(anyAddress(family))];
    return nodePortIPs(nodePortAddresses, interfaceAddresses).map(at);
  }
}
