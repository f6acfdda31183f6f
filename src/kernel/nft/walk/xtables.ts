import { hostLittleEndian } from '../../../native/byte-order.ts';
import { AttributeMap } from '../../netlink/attribute-map.ts';
import { AttributeReader } from '../../netlink/reader.ts';
import { protocolNumbers } from '../../numbers.ts';
import type { Expr, UnknownExpr } from '../expr.ts';
import { type Answer, answerOf, type Bits, both, equals, knownWord, opposite } from './known-bits.ts';
import type { PacketView } from './partial-packet.ts';

/** The matches and targets of iptables-nft rules that have no form of their own in nf_tables. */

/** A match or target: its name, revision, and the C struct of its settings. */
export interface Extension {
  readonly name: string;
  readonly revision: number;
  readonly info: DataView;
}

/** Facts beside the packet. */
export interface ExtensionFacts {
  readonly view: PacketView;
  /** Conntrack has seen the packet. */
  readonly isTracked: boolean;
  isLocal(address: Uint8Array): boolean;
}

/** NFTA_MATCH_* and NFTA_TARGET_* have the same numbers. */
const ATTRIBUTES = { NAME: 1, REVISION: 2, INFO: 3 } as const;

/** `-m conntrack --ctstate`: struct xt_conntrack_mtinfo2 and 3. */
const CONNTRACK = { MATCH_FLAGS: 146, INVERT_FLAGS: 148, STATE_MASK: 150, LENGTH: 154 } as const;
const CONNTRACK_STATE = 1;
const states = { invalid: 1, new: 8, dnat: 128 } as const;
/** `-m multiport`: struct xt_multiport_v1. */
const MULTIPORT = { COUNT: 1, PORTS: 2, RANGES: 32, INVERT: 47, LENGTH: 48 } as const;
const multiportDestination = 1;
/** `-m addrtype`: struct xt_addrtype_info_v1. */
const ADDRTYPE = { SOURCE: 0, DESTINATION: 2, FLAGS: 4, LENGTH: 8 } as const;
const addrtypeFlags = { invertSource: 1, invertDestination: 2 } as const;
/** Bits of route types. */
const unicast = 1 << 1;
const local = 1 << 2;
const anyPort = [0, 65_535] as const;

/** Reads an expression that wraps a match or target of iptables. */
export function readExtension({ data }: UnknownExpr): Extension {
  const attributes = new AttributeMap(AttributeReader.over(data));
  const info = attributes.bytes(ATTRIBUTES.INFO) ?? new Uint8Array();
  return {
    name: attributes.string(ATTRIBUTES.NAME) ?? '',
    revision: attributes.u32Be(ATTRIBUTES.REVISION) ?? 0,
    info: new DataView(info.buffer, info.byteOffset, info.byteLength),
  };
}

/** The comment of a rule that iptables wrote; undefined when it has none. */
export function commentOf(exprs: readonly Expr[]): string | undefined {
  for (const expr of exprs) {
    if (expr.kind !== 'unknown' || expr.name !== 'match') continue;
    const { name, info } = readExtension(expr);
    const bytes = new Uint8Array(info.buffer, info.byteOffset, info.byteLength);
    if (name === 'comment') return new TextDecoder().decode(bytes).split('\0', 1)[0];
  }
  return undefined;
}

/** Whether a packet matches; `maybe` for matches that are not understood. */
export function matchesExtension(extension: Extension, facts: ExtensionFacts): Answer {
  const { name, revision, info } = extension;
  switch (`${name} ${revision}`) {
    case 'comment 0':
    case 'nfacct 0':
      return 'yes';
    case 'conntrack 2':
    case 'conntrack 3':
      return info.byteLength < CONNTRACK.LENGTH ? 'maybe' : inState(info, facts);
    case 'multiport 1':
      return info.byteLength < MULTIPORT.LENGTH ? 'maybe' : hasPort(info, facts.view.port);
    case 'addrtype 1':
      return info.byteLength < ADDRTYPE.LENGTH ? 'maybe' : hasAddressType(info, facts);
    case 'tcp 0':
      return info.byteLength < 12 ? 'maybe' : isTCP(info, facts.view);
    case 'udp 0':
      return info.byteLength < 9 ? 'maybe' : isUDP(info, facts.view);
    default:
      return 'maybe';
  }
}

/** The mark after `-j MARK`; undefined for a form that is not understood. */
export function markAfter({ name, revision, info }: Extension, mark: Bits): Bits | undefined {
  if (name !== 'MARK' || revision !== 2 || info.byteLength < 8) return undefined;
  const [value, mask] = [info.getUint32(0, hostLittleEndian), info.getUint32(4, hostLittleEndian)];
  const cleared = knownWord(~mask).value;
  const flipped = knownWord(value).value;
  return {
    value: mark.value.map((byte, i) => (byte & (cleared[i] ?? 0)) ^ (flipped[i] ?? 0)),
    known: mark.known.map((byte, i) => byte | (~(cleared[i] ?? 0) & 0xff)),
  };
}

function inState(info: DataView, { view, isTracked }: ExtensionFacts): Answer {
  // Other conditions need facts about the connection that are not known.
  if (u16(info, CONNTRACK.MATCH_FLAGS) !== CONNTRACK_STATE) return 'maybe';
  const isInverted = (u16(info, CONNTRACK.INVERT_FLAGS) & CONNTRACK_STATE) !== 0;
  const state = isTracked ? states.new | (view.isRewritten ? states.dnat : 0) : states.invalid;
  return answerOf(((u16(info, CONNTRACK.STATE_MASK) & state) !== 0) !== isInverted);
}

function hasPort(info: DataView, port: number | undefined): Answer {
  if (info.getUint8(0) !== multiportDestination || port === undefined) return 'maybe';
  const count = Math.min(info.getUint8(MULTIPORT.COUNT), 15);
  let isListed = false;
  for (let i = 0; i < count; i++) {
    const first = u16(info, MULTIPORT.PORTS + 2 * i);
    const isRange = info.getUint8(MULTIPORT.RANGES + i) !== 0;
    const last = isRange ? u16(info, MULTIPORT.PORTS + 2 * ++i) : first;
    isListed ||= first <= port && port <= last;
  }
  return answerOf(isListed !== (info.getUint8(MULTIPORT.INVERT) !== 0));
}

function hasAddressType(info: DataView, { view, isLocal }: ExtensionFacts): Answer {
  const flags = info.getUint32(ADDRTYPE.FLAGS, hostLittleEndian);
  const { invertSource, invertDestination } = addrtypeFlags;
  // The other flags limit the answer to one interface.
  if ((flags & ~(invertSource | invertDestination)) !== 0) return 'maybe';
  const check = (offset: number, address: Uint8Array | undefined, invert: number): Answer => {
    const types = u16(info, offset);
    if (types === 0) return 'yes';
    if (!address) return 'maybe';
    const is = answerOf((types & (isLocal(address) ? local : unicast)) !== 0);
    return (flags & invert) === 0 ? is : opposite(is);
  };
  return both(
    check(ADDRTYPE.SOURCE, view.source, invertSource),
    check(ADDRTYPE.DESTINATION, view.destination, invertDestination),
  );
}

/** struct xt_tcp. */
function isTCP(info: DataView, { protocol, port }: PacketView): Answer {
  if (protocol !== protocolNumbers.TCP) return 'no';
  const inverted = info.getUint8(11);
  const [mask, wanted] = [info.getUint8(9), info.getUint8(10)];
  const syn = equals(
    { value: Uint8Array.of(0x02 & mask), known: Uint8Array.of(0xff) },
    Uint8Array.of(wanted),
  );
  const flags = (inverted & 4) === 0 ? syn : opposite(syn);
  const options: Answer = info.getUint8(8) === 0 ? 'yes' : 'maybe';
  return both(both(portsMatch(info, port, inverted), flags), options);
}

/** struct xt_udp. */
function isUDP(info: DataView, { protocol, port }: PacketView): Answer {
  return protocol === protocolNumbers.UDP ? portsMatch(info, port, info.getUint8(8)) : 'no';
}

function portsMatch(info: DataView, port: number | undefined, inverted: number): Answer {
  const isAnySource = u16(info, 0) === anyPort[0] && u16(info, 2) === anyPort[1] && (inverted & 1) === 0;
  const [first, last] = [u16(info, 4), u16(info, 6)];
  const isAny = first === anyPort[0] && last === anyPort[1];
  const inRange: Answer =
    isAny || port !== undefined ? answerOf(isAny || (first <= (port ?? 0) && (port ?? 0) <= last)) : 'maybe';
  return both(isAnySource ? 'yes' : 'maybe', (inverted & 2) === 0 ? inRange : opposite(inRange));
}

function u16(info: DataView, offset: number): number {
  return info.getUint16(offset, hostLittleEndian);
}
