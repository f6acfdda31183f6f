import { parseEntry } from '../../kernel/ipset/entry.ts';
import type { SetType } from '../../kernel/ipset/objects.ts';
import type { RulePacket } from '../../kernel/iptables/rule-match.ts';
import { cidrContains, type Family, formatIP, type IP } from '../../model/ip.ts';
import type { IpSets } from './kernel.ts';
import { kernelName, setDefinition, setNames } from './sets.ts';

interface KnownSet {
  readonly type: SetType;
  readonly entries: ReadonlySet<string>;
}

/** What our sets of one family hold at one moment. */
export class SetLookup {
  readonly #sets: ReadonlyMap<string, KnownSet>;

  constructor(sets: ReadonlyMap<string, KnownSet>) {
    this.#sets = sets;
  }

  /** Reads them all; those that are not there are not known. */
  static async read(sets: Pick<IpSets, 'list'>, family: Family): Promise<SetLookup> {
    const known = new Map<string, KnownSet>();
    for (const set of setNames) {
      const name = kernelName(set, family);
      const listed = await sets.list(name);
      if (listed)
        known.set(name, { type: setDefinition(set, family).type, entries: new Set(listed.entries) });
    }
    return new SetLookup(known);
  }

  /**
   * The entry that a packet matches, by what the rule looks at (`dst,dst,src`); '' when there is none, undefined when the
   * set is not known or the rule looks at what is not known of the packet.
   */
  find(name: string, dimensions: readonly string[], packet: RulePacket): string | undefined {
    const set = this.#sets.get(name);
    if (!set || dimensions.length !== set.type.split(',').length) return undefined;
    const { type, entries } = set;
    const [first, second, third] = dimensions;
    if (type === 'bitmap:port') return first === 'dst' ? among(entries, `${packet.port}`) : undefined;
    const address = addressAt(packet, first);
    if (type === 'hash:ip') return among(entries, formatIP(address));
    // Nothing is known of source ports.
    if (second !== 'dst') return undefined;
    const place = `${formatIP(address)},${packet.protocol.toLowerCase()}:${packet.port}`;
    if (type === 'hash:ip,port') return among(entries, place);
    const source = addressAt(packet, third);
    if (type === 'hash:ip,port,ip') return among(entries, `${place},${formatIP(source)}`);
    return networkAmong(entries, place, source);
  }
}

function addressAt({ source, destination }: RulePacket, dimension: string | undefined): IP {
  return dimension === 'src' ? source : destination;
}

function among(entries: ReadonlySet<string>, entry: string): string {
  return entries.has(entry) ? entry : '';
}

function networkAmong(entries: ReadonlySet<string>, place: string, address: IP): string {
  for (const entry of entries) {
    if (!entry.startsWith(`${place},`)) continue;
    const { ip2, prefix2 } = parseEntry(entry, 'hash:ip,port,net');
    if (ip2 && prefix2 !== undefined && cidrContains({ ...ip2, prefix: prefix2 }, address)) return entry;
  }
  return '';
}
