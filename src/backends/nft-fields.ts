import type { CmpOp, Expr, Register } from '../kernel/nft/expr.ts';
import { word } from '../kernel/nft/fields.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import { bitsOf, type Family, parseCIDR } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';

/** The expressions of one rule, in the order in which the kernel runs them. */
export type RuleBody = readonly Expr[];

/** A test, or its inverse. */
type Equality = Extract<CmpOp, 'eq' | 'neq'>;

/** Zero-terminated and filled up with zeros, as the kernel loads it. */
const interfaceNameBytes = 16;
const routeTypeLocal = 2;
/** Bits of conntrack's state and status. */
const stateNew = 1 << 3;
const directionReply = 1;
const statusDnat = 1 << 5;
const tcpReset = 1 << 2;

/** The packet is the first of its flow. */
export const isNew: RuleBody = hasBit({ kind: 'ct', key: 'state', dreg: 0 }, stateNew);

/** The flow had its destination rewritten. */
export const isDnat: RuleBody = hasBit({ kind: 'ct', key: 'status', dreg: 0 }, statusDnat);

/** The packet goes from the client to the server. */
export const isOriginalDirection: RuleBody = [
  { kind: 'ct', key: 'direction', dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(0) },
];

export const isNotDnat: RuleBody = hasBit({ kind: 'ct', key: 'status', dreg: 0 }, statusDnat, 'eq');

/** Matches packets in the reply direction. */
export const isReply: RuleBody = [
  { kind: 'ct', key: 'direction', dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(directionReply) },
];

/** A bit is set in what is loaded into register 0, or with `eq` it is not: nft's own way to test it. */
export function hasBit(load: Expr, bit: number, op: Equality = 'neq'): RuleBody {
  return [
    load,
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(bit), xor: word(0) },
    { kind: 'cmp', op, sreg: 0, value: word(0) },
  ];
}

/** Loads and tests of packet fields, whose place and size depend on the family. */
export class PacketFields {
  /** Registers that an address fills. */
  readonly addressWords: number;
  readonly #family: Family;
  readonly #addressBytes: number;

  constructor(family: Family) {
    this.#family = family;
    this.#addressBytes = bitsOf(family) / 8;
    this.addressWords = this.#addressBytes / 4;
  }

  saddr(dreg: Register): Expr {
    return this.#address(this.#family === 'IPv4' ? 12 : 8, dreg);
  }

  daddr(dreg: Register): Expr {
    return this.#address(this.#family === 'IPv4' ? 16 : 24, dreg);
  }

  /** Source port. */
  sport(dreg: Register): Expr {
    return { kind: 'payload', base: 'transport', offset: 0, length: 2, dreg };
  }

  /** Writes the address in the registers over the destination. */
  setDaddr(sreg: Register): Expr {
    const isV4 = this.#family === 'IPv4';
    return {
      kind: 'payload-set',
      base: 'network',
      offset: isV4 ? 16 : 24,
      length: this.#addressBytes,
      sreg,
      ...(isV4 && { headerChecksum: 10 }),
      updatesTransport: true,
    };
  }

  /** The address that the first packet of the flow was sent from. */
  originalSource(dreg: Register): Expr {
    return { kind: 'ct-original', key: this.#family === 'IPv4' ? 'saddr' : 'saddr6', dreg };
  }

  /** The packet is an ICMP message. */
  get isICMP(): RuleBody {
    return [
      { kind: 'meta', key: 'l4proto', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(this.#family === 'IPv4' ? 1 : 58) },
    ];
  }

  /** Protocol and destination port, two registers. */
  nodePort(at: Register): RuleBody {
    return [{ kind: 'meta', key: 'l4proto', dreg: at }, destinationPort(at + 1)];
  }

  /** Destination address, protocol and port. */
  frontend(at: Register): RuleBody {
    return [this.daddr(at), ...this.nodePort(at + this.addressWords)];
  }

  /** Destination address and port. */
  endpoint(at: Register): RuleBody {
    return [this.daddr(at), destinationPort(at + this.addressWords)];
  }

  isTCP(): RuleBody {
    return [
      { kind: 'meta', key: 'l4proto', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(protocolNumbers.TCP) },
    ];
  }

  /** A TCP packet without the flag RST. */
  isNoReset(): RuleBody {
    return [
      { kind: 'payload', base: 'transport', offset: 13, length: 1, dreg: 0 },
      { kind: 'bitwise', sreg: 0, dreg: 0, mask: Uint8Array.of(tcpReset), xor: Uint8Array.of(0) },
      { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(0) },
    ];
  }

  /** The first register behind a key that begins at register 0. */
  behind(key: 'frontend' | 'nodePort'): Register {
    return key === 'frontend' ? this.addressWords + 2 : 2;
  }

  /** Destination NAT to the address and port in consecutive registers. */
  dnat(at: Register): Expr {
    const family = this.#family === 'IPv4' ? 'ip' : 'ip6';
    return { kind: 'nat', type: 'dnat', family, addr: at, port: at + this.addressWords };
  }

  /** Port unreachable. */
  reject(): Expr {
    return { kind: 'reject', type: 'icmp-unreach', code: this.#family === 'IPv4' ? 3 : 4 };
  }

  /** The source is a pod of this node, or with `neq` it is not. Undefined when nothing can tell. */
  localPod(detector: LocalDetector, op: Equality = 'eq'): RuleBody | undefined {
    switch (detector.kind) {
      case 'none':
        return undefined;
      case 'cidr':
        return this.#inCIDR(this.saddr(0), detector.cidr, op);
      case 'interface':
        return cameBy(wholeName(detector.name), op);
      case 'prefix':
        return cameBy(new TextEncoder().encode(detector.prefix), op);
    }
  }

  toLoopback(op: Equality = 'eq'): RuleBody {
    return this.#inCIDR(this.daddr(0), this.#family === 'IPv4' ? '127.0.0.0/8' : '::1/128', op);
  }

  /** The address is one of this node's, by the routing table. */
  isNodeAddress(which: 'saddr' | 'daddr'): RuleBody {
    return [
      { kind: 'fib', flags: [which], result: 'type', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: word(routeTypeLocal) },
    ];
  }

  /** Source address cut to a prefix length. */
  sourcePrefix(prefix: number, at: Register): RuleBody {
    return [this.saddr(at), ...this.#cut(prefix, at)];
  }

  #address(offset: number, dreg: Register): Expr {
    return { kind: 'payload', base: 'network', offset, length: this.#addressBytes, dreg };
  }

  #inCIDR(load: Expr, text: string, op: Equality): RuleBody {
    const cidr = parseCIDR(text);
    if (!cidr || cidr.family !== this.#family) throw new Error(`${text} is not a CIDR of ${this.#family}`);
    return [load, ...this.#cut(cidr.prefix, 0), { kind: 'cmp', op, sreg: 0, value: cidr.bytes }];
  }

  /** Clears the host bits of an address; one without any is left as it is, as nft does. */
  #cut(prefix: number, at: Register): RuleBody {
    if (prefix === bitsOf(this.#family)) return [];
    const mask = new Uint8Array(this.#addressBytes).map((_, i) => {
      return 0xff & (0xff00 >> Math.min(8, Math.max(0, prefix - i * 8)));
    });
    return [{ kind: 'bitwise', sreg: at, dreg: at, mask, xor: new Uint8Array(mask.length) }];
  }
}

function destinationPort(dreg: Register): Expr {
  return { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg };
}

/** The name of the incoming interface begins with these bytes. */
function cameBy(name: Uint8Array, op: Equality): RuleBody {
  return [
    { kind: 'meta', key: 'iifname', dreg: 0 },
    { kind: 'cmp', op, sreg: 0, value: name },
  ];
}

/** No interface has a longer name than fits in front of the last zero; what is too long is cut there. */
function wholeName(text: string): Uint8Array {
  const bytes = new Uint8Array(interfaceNameBytes);
  new TextEncoder().encodeInto(text, bytes.subarray(0, interfaceNameBytes - 1));
  return bytes;
}
