import type { Expr, Register, Verdict } from '../../kernel/nft/expr.ts';
import type { Family } from '../../model/ip.ts';
import { bitsOf, type CIDR, parseCIDR } from '../../model/ip.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import { toArray, wordBytes } from './bytes.ts';
import { localSlotBase, type SetName } from './layout.ts';

/** The expressions of one rule, in the order in which the kernel runs them. */
export type RuleBody = readonly Expr[];

/** Which of a frontend's two lists of endpoints a rule draws from. */
export type EndpointList = 'cluster' | 'local';

const interfaceNameBytes = 16;
const routeTypeLocal = 2;

export const dispatchTo = (set: SetName, sreg: Register): Expr => lookup(set, sreg, 'verdict');

export function lookup(set: SetName, sreg: Register, dreg?: Register | 'verdict'): Expr {
  return dreg === undefined ? { kind: 'lookup', set, sreg } : { kind: 'lookup', set, sreg, dreg };
}

export function verdict(kind: 'jump' | 'goto', chain: string): Expr;
export function verdict(kind: 'drop' | 'return'): Expr;
export function verdict(kind: Verdict['kind'], chain?: string): Expr {
  if (kind === 'jump' || kind === 'goto') return { kind: 'verdict', verdict: { kind, chain: chain ?? '' } };
  return { kind: 'verdict', verdict: { kind } };
}

/** Conntrack state `new`: bit 3, as nft tests it. */
export const isNew: RuleBody = [
  { kind: 'ct', key: 'state', dreg: 0 },
  { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(8), xor: word(0) },
  { kind: 'cmp', op: 'neq', sreg: 0, value: word(0) },
];

/** The flow had its destination rewritten: conntrack status bit 5. */
export const isDnat: RuleBody = [
  { kind: 'ct', key: 'status', dreg: 0 },
  { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(32), xor: word(0) },
  { kind: 'cmp', op: 'neq', sreg: 0, value: word(0) },
];

export function hasMark(mark: number): RuleBody {
  return [
    { kind: 'meta', key: 'mark', dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(mark), xor: word(0) },
    { kind: 'cmp', op: 'neq', sreg: 0, value: word(0) },
  ];
}

/** Sets or clears bits of the packet mark and leaves the others as they are. */
export function changeMark(mark: number, set: boolean): RuleBody {
  return [
    { kind: 'meta', key: 'mark', dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(~mark >>> 0), xor: word(set ? mark : 0) },
    { kind: 'meta-set', key: 'mark', sreg: 0 },
  ];
}

export function loadPriority(dreg: Register): Expr {
  return { kind: 'meta', key: 'priority', dreg };
}

/** From register 0. */
export const setPriority: Expr = { kind: 'meta-set', key: 'priority', sreg: 0 };

export const clearPriority: RuleBody = [{ kind: 'immediate', dreg: 0, value: word(0) }, setPriority];

export const masquerade: Expr = { kind: 'masq', flags: ['fully-random'] };

/** A 32-bit number as registers hold it. */
export function word(value: number): Uint8Array {
  return toArray(wordBytes(value));
}

/** Loads and tests of packet fields, whose place and size depend on the family. */
export class Packet {
  readonly family: Family;
  /** Registers that an address fills. */
  readonly addressWords: number;
  readonly #addressBytes: number;

  constructor(family: Family) {
    this.family = family;
    this.#addressBytes = bitsOf(family) / 8;
    this.addressWords = this.#addressBytes / 4;
  }

  saddr(dreg: Register): Expr {
    return this.#address(this.family === 'IPv4' ? 12 : 8, dreg);
  }

  daddr(dreg: Register): Expr {
    return this.#address(this.family === 'IPv4' ? 16 : 24, dreg);
  }

  /** Protocol and destination port, two registers. */
  nodePort(at: Register): RuleBody {
    return [
      { kind: 'meta', key: 'l4proto', dreg: at },
      { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg: at + 1 },
    ];
  }

  /** Destination address, protocol and port. */
  frontend(at: Register): RuleBody {
    return [this.daddr(at), ...this.nodePort(at + this.addressWords)];
  }

  /** The first register behind a key. */
  behind(key: 'frontend' | 'nodePort'): Register {
    return key === 'frontend' ? this.addressWords + 2 : 2;
  }

  /** Destination NAT to the address and port in consecutive registers. */
  dnat(at: Register): Expr {
    const family = this.family === 'IPv4' ? 'ip' : 'ip6';
    return { kind: 'nat', type: 'dnat', family, addr: at, port: at + this.addressWords };
  }

  reject(): Expr {
    return { kind: 'reject', type: 'icmp-unreach', code: this.family === 'IPv4' ? 3 : 4 };
  }

  /** A number below `count`, from the range that the list's slots have. */
  slot(list: EndpointList, count: number, dreg: Register): Expr {
    const draw: Expr = { kind: 'numgen', type: 'random', modulus: count, dreg };
    return list === 'cluster' ? draw : { ...draw, offset: localSlotBase };
  }

  /** The source is a pod of this node, or with `inverse` it is not. Undefined when nothing can tell. */
  localPod(detector: LocalDetector, inverse = false): RuleBody | undefined {
    const op = inverse ? 'neq' : 'eq';
    switch (detector.kind) {
      case 'none':
        return undefined;
      case 'cidr':
        return this.#inCIDR(this.saddr(0), detector.cidr, op);
      case 'interface':
        return [
          { kind: 'meta', key: 'iifname', dreg: 0 },
          { kind: 'cmp', op, sreg: 0, value: name(detector.name) },
        ];
      case 'prefix':
        return [
          { kind: 'meta', key: 'iifname', dreg: 0 },
          { kind: 'cmp', op, sreg: 0, value: new TextEncoder().encode(detector.prefix) },
        ];
    }
  }

  toLoopback(inverse = false): RuleBody {
    const loopback = this.family === 'IPv4' ? '127.0.0.0/8' : '::1/128';
    return this.#inCIDR(this.daddr(0), loopback, inverse ? 'neq' : 'eq');
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
    if (prefix === bitsOf(this.family)) return [this.saddr(at)];
    return [this.saddr(at), this.#masked(at, prefix)];
  }

  #address(offset: number, dreg: Register): Expr {
    return { kind: 'payload', base: 'network', offset, length: this.#addressBytes, dreg };
  }

  #inCIDR(load: Expr, text: string, op: 'eq' | 'neq'): RuleBody {
    const cidr = parseCIDR(text);
    if (!cidr || cidr.family !== this.family) throw new Error(`${text} is not a CIDR of ${this.family}`);
    return [load, ...this.#mask(cidr), { kind: 'cmp', op, sreg: 0, value: cidr.bytes }];
  }

  #mask(cidr: CIDR): RuleBody {
    return cidr.prefix === bitsOf(this.family) ? [] : [this.#masked(0, cidr.prefix)];
  }

  #masked(at: Register, prefix: number): Expr {
    const mask = new Uint8Array(this.#addressBytes).map((_, i) => {
      return 0xff & (0xff00 >> Math.min(8, Math.max(0, prefix - i * 8)));
    });
    return { kind: 'bitwise', sreg: at, dreg: at, mask, xor: new Uint8Array(mask.length) };
  }
}

/** An interface name as registers hold it. */
function name(text: string): Uint8Array {
  const bytes = new Uint8Array(interfaceNameBytes);
  new TextEncoder().encodeInto(text, bytes.subarray(0, interfaceNameBytes - 1));
  return bytes;
}
