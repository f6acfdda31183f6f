import type { RulePacket } from '../kernel/iptables/rule-match.ts';
import { type IP, parseIP } from '../model/ip.ts';
import type { Packet } from './inspection.ts';

/** A packet as rules see it before any of them did anything. Throws RangeError when an address is none. */
export function rulePacket({ family, protocol, source, destination, port, origin }: Packet): RulePacket {
  return {
    family,
    protocol,
    source: addressOf(source),
    destination: addressOf(destination),
    port,
    interface: origin === 'node' ? undefined : origin.interface,
    mark: 0,
    isRewritten: false,
  };
}

function addressOf(text: string): IP {
  const ip = parseIP(text);
  if (!ip) throw new RangeError(`${JSON.stringify(text)} is no IP address`);
  return ip;
}
