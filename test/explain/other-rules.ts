import type { Obstacle } from '../../src/backends/inspection.ts';
import type { ExplanationReport } from '../../src/inspect/api.ts';
import { families, joinHostPort } from '../../src/model/ip.ts';
import { sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import type { Outcome } from '../cluster/lab/traffic.ts';
import { type AddressBook, addressBooks } from '../contract/address-book.ts';
import type { Landscape } from '../contract/landscape.ts';
import { hostPort, type NumberedService, nodePortOf, podPort, servicePortOf } from '../contract/objects.ts';
import type { TestPacket } from './packets.ts';
import { predict } from './prediction.ts';

/** Rules of another program. */
export interface OtherRuleset {
  readonly name: string;
  /** Statements of `nft -f` for one family, which add a table, or commands of iptables that add rules. */
  readonly script: (book: AddressBook, ip: 'ip' | 'ip6') => string | readonly string[];
  /** Explain may answer that it does not know. */
  readonly isUnclear?: boolean;
}

const SILENCE_MS = paced(700);
const table = 'kpt-other';

function chain(hook: string, priority: number, policy: string, ...rules: readonly string[]): string {
  return `add table inet ${table}
add chain inet ${table} ${hook} { type filter hook ${hook} priority ${priority}; policy ${policy}; }
${rules.map((rule) => `add rule inet ${table} ${hook} ${rule}`).join('\n')}\n`;
}

const established = 'ct state established,related accept';
const stop = 'drop comment "stops"';

/** Rulesets such as firewalls write. Replies pass all of them, so that only the first packet decides. */
export const otherRulesets: readonly OtherRuleset[] = [
  { name: 'a forward chain of policy drop', script: () => chain('forward', 0, 'drop', established) },
  {
    name: 'a forward chain of policy drop that accepts pods',
    script: ({ clusterCIDR }, ip) =>
      chain('forward', 0, 'drop', established, `${ip} daddr ${clusterCIDR} accept`),
  },
  {
    name: 'a forward chain that knows packets by the port of the service, which they no longer have',
    script: () => chain('forward', 0, 'accept', `tcp dport { 80, 81 } ${stop}`),
  },
  {
    name: 'a forward chain that knows packets by the port of the endpoint',
    script: () => chain('forward', 10, 'accept', `ct state new tcp dport ${podPort} ${stop}`),
  },
  {
    name: 'a chain before the proxy that drops the port of the service',
    script: () => chain('prerouting', -300, 'accept', `tcp dport { 80, 81 } ${stop}`),
  },
  {
    name: 'a chain before conntrack that asks for the state of the connection',
    // A packet at the loopback device was tracked when it was sent, and the test itself asks the program there.
    script: () => chain('prerouting', -300, 'accept', `iifname != "lo" ct state new ${stop}`),
  },
  {
    name: 'an output chain that drops what the proxy has rewritten',
    script: () => chain('output', 0, 'accept', `ct status dnat ct state new ${stop}`),
  },
  {
    name: 'an input chain of policy drop',
    script: () => chain('input', 0, 'drop', established, 'iifname "lo" accept', 'ip6 nexthdr icmpv6 accept'),
  },
  {
    name: 'a postrouting chain that drops packets to one endpoint',
    script: ({ hosts }, ip) =>
      chain('postrouting', 0, 'accept', `ct state new ${ip} daddr ${hosts.A} ${stop}`),
  },
  {
    name: 'rules that jump, go to and return from other chains',
    script: ({ hosts }, ip) => `add table inet ${table}
add chain inet ${table} pods
add chain inet ${table} checked
add rule inet ${table} pods ${ip} saddr ${hosts.pod} return
add rule inet ${table} pods ct state new ${stop}
add rule inet ${table} checked jump pods
add rule inet ${table} checked accept
${chain('forward', 0, 'drop', established, 'meta nfproto ipv4 goto checked', 'meta nfproto ipv6 goto checked')}`,
  },
  {
    name: 'named sets, ranges and a verdict map with an answer for everything else',
    script: ({ clusterCIDR }, ip) => `add table inet ${table}
add set inet ${table} pods { type ${ip === 'ip' ? 'ipv4_addr' : 'ipv6_addr'}; flags interval; }
add element inet ${table} pods { ${clusterCIDR} }
${chain('forward', 0, 'accept', established, `${ip} saddr @pods accept`, `tcp dport vmap { 22 : accept, 8000-8100 : drop, * : drop } comment "stops"`)}`,
  },
  {
    name: 'a mark that one chain sets and another one tests',
    script: ({ hosts }, ip) =>
      `${chain('prerouting', -150, 'accept', `${ip} saddr ${hosts.pod} meta mark set meta mark | 0x10`)}
${chain('forward', 0, 'accept', `ct state new meta mark & 0x10 == 0x10 ${stop}`)}`,
  },
  {
    name: 'rules that ask for interfaces and routes',
    script: ({ hosts }, ip) =>
      `${chain('prerouting', -150, 'accept', `fib saddr . iif oif missing drop`)}
${chain('forward', 0, 'accept', 'fib daddr type local drop', `iifname "podveth*" ${ip} daddr != ${hosts.A} ct state new reject comment "stops"`)}`,
  },
  {
    name: 'a rule that depends on what nobody knows',
    script: () => chain('forward', 0, 'accept', 'ct state new tcp sport > 1 drop'),
    isUnclear: true,
  },
  {
    name: 'iptables-nft with a chain FORWARD of policy DROP',
    script: () => [
      '-P FORWARD DROP',
      '-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment replies -j ACCEPT',
    ],
  },
  {
    name: 'iptables-nft with rules for ports and kinds of addresses',
    script: ({ hosts }) => [
      `-A FORWARD -m addrtype --dst-type LOCAL -j DROP`,
      `-A FORWARD -s ${hosts.pod} -p tcp -m multiport --dports 22,8000:8100 -m conntrack --ctstate NEW -m comment --comment stops -j REJECT`,
    ],
  },
];

/** Enough to see that the hooks of a mode are known. */
export const someOtherRulesets = otherRulesets.filter(
  ({ name }) =>
    / of policy |what the proxy has rewritten|to one endpoint/.test(name) && !name.startsWith('iptables'),
);

interface Sent {
  readonly packet: TestPacket;
  readonly report: ExplanationReport;
  readonly outcome: Outcome;
}

/** Sends packets to these services while the ruleset is there, and returns how explain contradicts their fates. */
export async function checkOtherRules(
  ruleset: OtherRuleset,
  landscape: Landscape,
  services: readonly NumberedService[],
): Promise<{ readonly faults: readonly unknown[]; readonly certain: number; readonly free: number }> {
  const faults: unknown[] = [];
  let [certain, free] = [0, 0];
  for (const family of families) {
    const book = addressBooks[family];
    const remove = install(ruleset, book);
    try {
      const sent = await Promise.all(packetsOf(book, services).map((packet) => send(packet, landscape)));
      for (const one of sent) {
        const { obstacles = [] } = one.report.otherRules ?? {};
        if (obstacles.length === 0) free++;
        else if (obstacles[0]?.certainty === 'certain') certain++;
        const fault = faultOf(one, ruleset.isUnclear ?? false);
        if (fault !== undefined) {
          faults.push({ fault, packet: one.packet, outcome: one.outcome, ...one.report.otherRules });
        }
      }
    } finally {
      remove();
    }
  }
  return { faults, certain, free };
}

/** Returns a function that removes the rules again. */
function install({ script }: OtherRuleset, book: AddressBook): () => void {
  const isIPv4 = book.family === 'IPv4';
  const rules = script(book, isIPv4 ? 'ip' : 'ip6');
  if (typeof rules === 'string') {
    sh('nft -f -', rules);
    return () => void sh(`nft delete table inet ${table}`);
  }
  const iptables = `${isIPv4 ? 'iptables' : 'ip6tables'}-nft -w`;
  for (const rule of rules) sh(`${iptables} ${rule}`);
  return () => {
    for (const rule of rules) {
      sh(`${iptables} ${rule.replace(/^-A/, '-D').replace(/^(-P .*) DROP$/, '$1 ACCEPT')}`);
    }
  };
}

async function send(packet: TestPacket, landscape: Landscape): Promise<Sent> {
  const report = await predict(packet);
  const { host, source, destination, port, transport } = packet;
  const question = { transport, address: destination, port, source, timeoutMs: SILENCE_MS };
  return { packet, report, outcome: await landscape.host(host).ask(question) };
}

function faultOf({ packet, report, outcome }: Sent, isUnclear: boolean): string | undefined {
  const { otherRules } = report;
  if (!otherRules) return `nothing was looked at: ${report.otherRulesUnknown}`;
  const { obstacles } = otherRules;
  const possible = obstacles.filter(({ certainty }) => certainty === 'possible');
  if (possible.length > 0) return isUnclear ? undefined : 'explain does not know, and could';
  if (
    obstacles.some(({ causes }) =>
      causes.some(({ handle, comment }) => handle !== null && comment !== 'stops'),
    )
  ) {
    return 'another rule than the one that stops packets is named';
  }
  const stopped = obstacles.filter((obstacle) => isOnWay(obstacle, outcome, packet));
  if (outcome.kind === 'answered') return stopped.length > 0 ? 'it was answered' : undefined;
  return obstacles.length > 0 ? undefined : 'it was stopped';
}

/** Whether the obstacle is on the way of a packet that this endpoint answered. */
function isOnWay({ endpoints }: Obstacle, outcome: Outcome, { family }: TestPacket): boolean {
  if (endpoints === null || outcome.kind !== 'answered') return true;
  const { hosts, node } = addressBooks[family];
  const by =
    outcome.by === 'node'
      ? joinHostPort(node, hostPort)
      : joinHostPort(hosts[outcome.by as keyof typeof hosts] ?? '', podPort);
  return endpoints.includes(by);
}

function packetsOf(book: AddressBook, services: readonly NumberedService[]): TestPacket[] {
  const { family, hosts, clients, nodeSecond, node } = book;
  const pod = { host: 'pod', source: hosts.pod } as const;
  const client = { host: 'outside', source: clients.client } as const;
  const own = { host: 'node', source: nodeSecond } as const;
  const packets = services.flatMap(({ n, spec }) => {
    const { clusterIP, loadBalancer } = book.service(n);
    const port = servicePortOf(spec);
    return [
      { ...pod, destination: clusterIP, port },
      { ...own, destination: clusterIP, port },
      { ...client, destination: loadBalancer, port },
      { ...client, destination: node, port: nodePortOf(n) },
    ];
  });
  const direct = { ...pod, destination: hosts.D, port: podPort };
  return [...packets, direct].map((packet) => ({ ...packet, family, transport: 'tcp' as const }));
}
