import { endianness } from 'node:os';
import type { Expr, Register } from '../../../kernel/nft/expr.ts';
import type { BaseChain } from '../../../kernel/nft/objects.ts';
import { bitsOf, type Family, parseCIDR, parseIP } from '../../../model/ip.ts';
import type { LocalDetector } from '../../../model/local-detector.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { SetName } from './layout.ts';

type Rule = readonly Expr[];

/** A chain and all its rules. */
export interface PortalChain {
  readonly name: string;
  readonly base?: BaseChain;
  readonly rules: readonly Rule[];
}

/** Where frontends that nobody serves send their packets. */
export const rejectChain = 'reject-packet';

export const routeTypeLocal = 2;
const interfaceNameBytes = 16;
/** Bits of conntrack's state and status. */
export const stateNew = 8;
export const statusDnat = 32;

/** All chains of the table, helpers before those that use them. They do not depend on services. */
export function portalChains(settings: UserspaceSettings): PortalChain[] {
  const packet = new Packet(settings.family);
  const ifNew = (chain: string): Rule => [...hasBit('state', stateNew), jump(chain)];
  return [
    { name: rejectChain, rules: [[packet.reject()]] },
    { name: 'guard', rules: [guardRule(packet)] },
    { name: 'dispatch', rules: dispatchRules(settings, packet) },
    { name: 'refuse', rules: [[...packet.frontend(0), verdictOf('refused')]] },
    {
      name: 'refuse-nodeports',
      rules: [[...toNodePorts(settings, packet), ...packet.nodePort(0), verdictOf('refused-nodeports')]],
    },
    {
      name: 'refuse-undefined',
      rules: [
        [packet.daddr(0), isIn('cluster-addresses'), goTo(rejectChain)],
        [packet.daddr(0), isIn('service-ranges'), { kind: 'verdict', verdict: { kind: 'drop' } }],
      ],
    },
    base('filter-prerouting', 'filter', 'prerouting', -110, [ifNew('guard')]),
    base('filter-output-first', 'filter', 'output', -110, [ifNew('guard')]),
    base('nat-prerouting', 'nat', 'prerouting', -100, [[jump('dispatch')]]),
    base('nat-output', 'nat', 'output', -100, [[jump('dispatch')]]),
    base('filter-input', 'filter', 'input', 0, [
      directRule(settings, packet),
      ifNew('refuse-nodeports'),
      ifNew('refuse'),
    ]),
    base('filter-forward', 'filter', 'forward', 0, [ifNew('refuse'), ifNew('refuse-undefined')]),
    base('filter-output', 'filter', 'output', 0, [ifNew('refuse'), ifNew('refuse-undefined')]),
  ];
}

/** Cluster IPs and other addresses before node ports; who is on this node before everybody else. */
function dispatchRules(settings: UserspaceSettings, packet: Packet): Rule[] {
  const { localDetector, hostIP } = settings;
  const nearby = [packet.localPod(localDetector), packet.isNodeAddress('saddr')].filter(
    (rule) => rule !== undefined,
  );
  const toAddress = (set: SetName): Rule => [
    ...packet.frontend(0),
    ...packet.sendTo(hostIP, set, packet.words + 2),
  ];
  const onNode = toNodePorts(settings, packet);
  const toNode = (set: SetName): Rule => [...onNode, ...packet.nodePort(0), ...packet.sendTo(hostIP, set, 2)];
  return [
    ...nearby.map((isNear) => [...isNear, ...toAddress('near-portals')]),
    toAddress('portals'),
    ...nearby.map((isNear) => [...isNear, ...toNode('near-nodeports')]),
    toNode('nodeports'),
  ];
}

function guardRule(packet: Packet): Rule {
  const source = packet.words + 2;
  return [
    ...packet.frontend(0),
    isIn('guarded'),
    ...packet.frontend(0),
    packet.saddr(source),
    { kind: 'lookup', set: 'sources', sreg: 0, inverse: true },
    { kind: 'verdict', verdict: { kind: 'drop' } },
  ];
}

/** Proxy ports are for captured packets only: who came straight to one would get around every policy. */
function directRule({ hostIP }: UserspaceSettings, packet: Packet): Rule {
  return [
    packet.daddr(0),
    { kind: 'cmp', op: 'eq', sreg: 0, value: parseIP(hostIP)?.bytes ?? new Uint8Array() },
    ...packet.nodePort(0),
    isIn('proxy-ports'),
    ...hasBit('state', stateNew),
    ...hasBit('status', statusDnat, 'eq'),
    goTo(rejectChain),
  ];
}

function toNodePorts({ nodePortAddresses }: UserspaceSettings, packet: Packet): Rule {
  return nodePortAddresses.matchAll
    ? packet.isNodeAddress('daddr')
    : [packet.daddr(0), isIn('node-addresses')];
}

/** A bit of conntrack's state or status is set; with `eq`, is not. */
function hasBit(key: 'state' | 'status', bit: number, op: 'neq' | 'eq' = 'neq'): Rule {
  return [
    { kind: 'ct', key, dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(bit), xor: word(0) },
    { kind: 'cmp', op, sreg: 0, value: word(0) },
  ];
}

function isIn(set: SetName): Expr {
  return { kind: 'lookup', set, sreg: 0 };
}

function verdictOf(set: SetName): Expr {
  return { kind: 'lookup', set, sreg: 0, dreg: 'verdict' };
}

function jump(chain: string): Expr {
  return { kind: 'verdict', verdict: { kind: 'jump', chain } };
}

function goTo(chain: string): Expr {
  return { kind: 'verdict', verdict: { kind: 'goto', chain } };
}

function base(
  name: string,
  type: BaseChain['type'],
  hook: BaseChain['hook'],
  priority: number,
  rules: readonly Rule[],
): PortalChain {
  return { name, base: { type, hook, priority }, rules };
}

/** A 32-bit number as registers hold it. */
export function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, endianness() === 'LE');
  return bytes;
}

/** Loads and tests of packet fields, whose place and size depend on the family. */
class Packet {
  readonly #family: Family;
  /** Registers that an address fills. */
  readonly words: number;

  constructor(family: Family) {
    this.#family = family;
    this.words = bitsOf(family) / 32;
  }

  saddr(dreg: Register): Expr {
    return this.#address(this.#family === 'IPv4' ? 12 : 8, dreg);
  }

  daddr(dreg: Register): Expr {
    return this.#address(this.#family === 'IPv4' ? 16 : 24, dreg);
  }

  /** Protocol and destination port, two registers. */
  nodePort(at: Register): Rule {
    return [
      { kind: 'meta', key: 'l4proto', dreg: at },
      { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg: at + 1 },
    ];
  }

  /** Destination address, protocol and port. */
  frontend(at: Register): Rule {
    return [this.daddr(at), ...this.nodePort(at + this.words)];
  }

  /** To the proxy port that the map has for the key at register 0; `at` is the first free register. */
  sendTo(hostIP: string, set: SetName, at: Register): Rule {
    const port = at + this.words;
    const family = this.#family === 'IPv4' ? 'ip' : 'ip6';
    return [
      { kind: 'lookup', set, sreg: 0, dreg: port },
      { kind: 'immediate', dreg: at, value: parseIP(hostIP)?.bytes ?? new Uint8Array() },
      { kind: 'nat', type: 'dnat', family, addr: at, port },
    ];
  }

  reject(): Expr {
    return { kind: 'reject', type: 'icmp-unreach', code: this.#family === 'IPv4' ? 3 : 4 };
  }

  isNodeAddress(which: 'saddr' | 'daddr'): Rule {
    return [
      { kind: 'fib', flags: [which], result: 'type', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: word(routeTypeLocal) },
    ];
  }

  /** The source is a pod of this node; undefined when nothing can tell. */
  localPod(detector: LocalDetector): Rule | undefined {
    switch (detector.kind) {
      case 'none':
        return undefined;
      case 'cidr':
        return this.#fromCIDR(detector.cidr);
      case 'interface':
        return interfaceIs(detector.name, interfaceNameBytes);
      case 'prefix':
        return interfaceIs(detector.prefix, Buffer.byteLength(detector.prefix));
    }
  }

  #address(offset: number, dreg: Register): Expr {
    return { kind: 'payload', base: 'network', offset, length: this.words * 4, dreg };
  }

  #fromCIDR(text: string): Rule {
    const cidr = parseCIDR(text);
    if (!cidr || cidr.family !== this.#family) throw new Error(`${text} is not a CIDR of ${this.#family}`);
    const mask = cidr.bytes.map((_, i) => 0xff & (0xff00 >> Math.min(8, Math.max(0, cidr.prefix - i * 8))));
    return [
      this.saddr(0),
      { kind: 'bitwise', sreg: 0, dreg: 0, mask, xor: new Uint8Array(mask.length) },
      { kind: 'cmp', op: 'eq', sreg: 0, value: cidr.bytes },
    ];
  }
}

/** The incoming interface has this name, or one that begins with it. */
function interfaceIs(name: string, length: number): Rule {
  const value = new Uint8Array(length);
  new TextEncoder().encodeInto(name, value);
  return [
    { kind: 'meta', key: 'iifname', dreg: 0 },
    { kind: 'cmp', op: 'eq', sreg: 0, value },
  ];
}
