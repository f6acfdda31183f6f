import type { NodeForwarder } from '../../forwarder/open.ts';
import type { PortClaim } from '../../forwarder/port-claim.ts';
import { joinHostPort } from '../../model/ip.ts';
import { nodePortIPs } from '../../model/node-port-addresses.ts';
import { anyAddress, type Frontend } from './frontends.ts';
import type { UserspaceSettings } from './settings.ts';

interface Wanted {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly ip: string;
  readonly port: number;
}

/**
 * Holds the ports that captured frontends have on this node, so that no other program takes one and wonders why
 * nobody comes: node ports, and service ports at addresses that are this node's own.
 */
export class PortClaims {
  readonly #settings: UserspaceSettings;
  readonly #claim: NodeForwarder['claim'];
  readonly #held = new Map<string, Map<string, PortClaim>>();

  constructor(settings: UserspaceSettings, claim: NodeForwarder['claim']) {
    this.#settings = settings;
    this.#claim = claim;
  }

  /**
   * Holds what a service port's frontend needs at the addresses that the node has now, and nothing else. Throws when
   * another program has it.
   */
  hold(owner: string, frontend: Frontend, interfaceAddresses: readonly string[]): void {
    const wanted = new Map(this.#wanted(frontend, interfaceAddresses).map((claim) => [claim.name, claim]));
    const held = this.#held.get(owner) ?? new Map<string, PortClaim>();
    for (const [name, claim] of held) {
      if (wanted.has(name)) continue;
      claim.release();
      held.delete(name);
    }
    this.#held.set(owner, held);
    for (const [name, { protocol, ip, port }] of wanted) {
      if (!held.has(name)) held.set(name, this.#claim(protocol, { ip, port }));
    }
  }

  release(owner: string): void {
    for (const claim of this.#held.get(owner)?.values() ?? []) claim.release();
    this.#held.delete(owner);
  }

  close(): void {
    for (const owner of [...this.#held.keys()]) this.release(owner);
  }

  #wanted(frontend: Frontend, interfaceAddresses: readonly string[]): Wanted[] {
    const { kind, ip, port, protocol } = frontend;
    if (protocol === 'SCTP') return [];
    const { family, nodePortAddresses } = this.#settings;
    const at = (address: string): Wanted => ({
      name: `${joinHostPort(address, port)}/${protocol}`,
      protocol,
      ip: address,
      port,
    });
    if (kind !== 'nodeport') return interfaceAddresses.includes(ip) ? [at(ip)] : [];
    if (nodePortAddresses.matchAll) return [at(anyAddress(family))];
    return nodePortIPs(nodePortAddresses, interfaceAddresses).map(at);
  }
}
