import type { JumpTable } from '../jumps.ts';
import { forwardRules, masqueradeMarked, podSource } from '../rule-text.ts';
import { chains } from './chains.ts';
import { type IpsetName, kernelName, setComment } from './sets.ts';
import type { IpvsSettings } from './settings.ts';

/** Says whether anything is wanted in a set; rules that look up an empty one are mostly left out. */
export type IsUsed = (set: IpsetName) => boolean;

/**
 * Input for iptables-restore: flushes our chains and fills them. It depends on which sets are in use, not on what is
 * in them, except for `outFilter`, which has a rule for each load balancer that this node may not reach.
 */
export function restoreInput(settings: IpvsSettings, isUsed: IsUsed, outFilter: readonly string[]): string {
  const rules = new Rules(settings, isUsed);
  const nat = [
    ...rules.start(),
    ...rules.loadBalancer(),
    ...rules.nodePorts(),
    ...rules.clusterIPs(),
    ...rules.externalAddresses(),
    ...rules.accepts(),
    ...masqueradeMarked(settings.masqueradeBit),
  ];
  const filter = [
    ...rules.sourceRanges(),
    ...outFilter.map((rule) => `-A KUBE-IPVS-OUT-FILTER ${rule}`),
    ...rules.forward(),
    ...rules.accessFilter(),
  ];
  return tableInput('nat', nat) + tableInput('filter', filter);
}

function tableInput(table: JumpTable, rules: readonly string[]): string {
  const declarations = chains[table].map((chain) => `:${chain} - [0:0]`);
  return [`*${table}`, ...declarations, ...rules, 'COMMIT', ''].join('\n');
}

function comment(text: string): string {
  return `-m comment --comment "${text}"`;
}

const externalAccepts = [
  '-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT',
  '-m addrtype --dst-type LOCAL -j ACCEPT',
];

class Rules {
  readonly #settings: IpvsSettings;
  readonly #isUsed: IsUsed;

  constructor(settings: IpvsSettings, isUsed: IsUsed) {
    this.#settings = settings;
    this.#isUsed = isUsed;
  }

  start(): string[] {
    const loopback = this.#settings.family === 'IPv4' ? '127.0.0.0/8' : '::1/128';
    return [
      `-A KUBE-SERVICES -s ${loopback} -j RETURN`,
      ...this.#ifUsed('KUBE-LOOP-BACK', (match) => [
        `-A KUBE-POSTROUTING ${match('dst,dst,src')} -j MASQUERADE`,
      ]),
    ];
  }

  loadBalancer(): string[] {
    return [
      ...this.#ifUsed('KUBE-LOAD-BALANCER', (match) => [
        `-A KUBE-SERVICES ${match('dst,dst')} -j KUBE-LOAD-BALANCER`,
      ]),
      ...this.#ifUsed('KUBE-LOAD-BALANCER-LOCAL', (match) => [
        `-A KUBE-LOAD-BALANCER ${match('dst,dst')} -j RETURN`,
      ]),
    ];
  }

  nodePorts(): string[] {
    const rows = [
      ['tcp', 'KUBE-NODE-PORT-LOCAL-TCP', 'KUBE-NODE-PORT-TCP', 'dst'],
      ['udp', 'KUBE-NODE-PORT-LOCAL-UDP', 'KUBE-NODE-PORT-UDP', 'dst'],
      ['sctp', 'KUBE-NODE-PORT-LOCAL-SCTP-HASH', 'KUBE-NODE-PORT-SCTP-HASH', 'dst,dst'],
    ] as const;
    return rows.flatMap(([protocol, local, all, what]) => [
      ...this.#ifUsed(local, (match) => [`-A KUBE-NODE-PORT -p ${protocol} ${match(what)} -j RETURN`]),
      ...this.#ifUsed(all, (match) => [`-A KUBE-NODE-PORT -p ${protocol} ${match(what)} -j KUBE-MARK-MASQ`]),
    ]);
  }

  /** Without a way to tell pods of this node, only what the node itself sends from a service address is marked. */
  clusterIPs(): string[] {
    const { masqueradeAll, localDetector } = this.#settings;
    return this.#ifUsed('KUBE-CLUSTER-IP', (match) => {
      const pods = podSource(localDetector);
      if (masqueradeAll) return [`-A KUBE-SERVICES ${match('dst,dst')} -j KUBE-MARK-MASQ`];
      if (pods) return [`-A KUBE-SERVICES ${match('dst,dst')} ! ${pods} -j KUBE-MARK-MASQ`];
      return [`-A KUBE-SERVICES ${match('src,dst')} -j KUBE-MARK-MASQ`];
    });
  }

  externalAddresses(): string[] {
    const rulesFor = (set: IpsetName, targets: readonly string[]) =>
      this.#ifUsed(set, (match) => targets.map((target) => `-A KUBE-SERVICES ${match('dst,dst')} ${target}`));
    return [
      ...rulesFor('KUBE-EXTERNAL-IP', ['-j KUBE-MARK-MASQ', ...externalAccepts]),
      ...rulesFor('KUBE-EXTERNAL-IP-LOCAL', externalAccepts),
    ];
  }

  accepts(): string[] {
    const accept = (set: IpsetName) =>
      this.#isUsed(set) ? [`-A KUBE-SERVICES ${this.#lookUp(set, 'dst,dst')} -j ACCEPT`] : [];
    return [
      '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT',
      '-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ',
      ...accept('KUBE-CLUSTER-IP'),
      ...accept('KUBE-LOAD-BALANCER'),
    ];
  }

  sourceRanges(): string[] {
    const admit = (set: IpsetName) =>
      this.#ifUsed(set, (match) => [`-A KUBE-SOURCE-RANGES-FIREWALL ${match('dst,dst,src')} -j RETURN`]);
    return [
      ...this.#ifUsed('KUBE-LOAD-BALANCER-FW', (match) => [
        `-A KUBE-PROXY-FIREWALL ${match('dst,dst')} -j KUBE-SOURCE-RANGES-FIREWALL`,
      ]),
      ...admit('KUBE-LOAD-BALANCER-SOURCE-CIDR'),
      ...admit('KUBE-LOAD-BALANCER-SOURCE-IP'),
      '-A KUBE-SOURCE-RANGES-FIREWALL -j DROP',
    ];
  }

  forward(): string[] {
    return [
      ...forwardRules(this.#settings.masqueradeBit),
      `-A KUBE-NODE-PORT ${this.#match('KUBE-HEALTH-CHECK-NODE-PORT', 'dst')} -j ACCEPT`,
    ];
  }

  /** The node answers for all bound addresses: what is no service must not reach the node's own listeners. */
  accessFilter(): string[] {
    const pass = (set: IpsetName, what: string) => `-A KUBE-IPVS-FILTER ${this.#lookUp(set, what)} -j RETURN`;
    const bound = this.#lookUp('KUBE-IPVS-IPS', 'dst');
    return [
      pass('KUBE-LOAD-BALANCER', 'dst,dst'),
      pass('KUBE-CLUSTER-IP', 'dst,dst'),
      pass('KUBE-EXTERNAL-IP', 'dst,dst'),
      pass('KUBE-EXTERNAL-IP-LOCAL', 'dst,dst'),
      pass('KUBE-HEALTH-CHECK-NODE-PORT', 'dst'),
      `-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW ${bound} -j REJECT`,
    ];
  }

  #ifUsed(set: IpsetName, rules: (match: (what: string) => string) => string[]): string[] {
    return this.#isUsed(set) ? rules((what) => this.#match(set, what)) : [];
  }

  #match(set: IpsetName, what: string): string {
    return `${comment(setComment(set))} ${this.#lookUp(set, what)}`;
  }

  #lookUp(set: IpsetName, what: string): string {
    return `-m set --match-set ${kernelName(set, this.#settings.family)} ${what}`;
  }
}
