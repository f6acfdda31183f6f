/** Take-over, repair, listing and removal of the table, on a real kernel. */

import assert from 'node:assert/strict';
import { after, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { nftablesMode } from '../../src/backends/nftables/mode.ts';
import { RepairBudget } from '../../src/backends/repair-budget.ts';
import { defaultConfig } from '../../src/config/defaults.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { createProxyMetrics } from '../../src/obs/proxy-metrics.ts';
import { Registry } from '../../src/obs/registry.ts';
import { mergeRanges } from '../../src/plan/source-ranges.ts';
import { enterNamespace, hasProgram, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import { eventually } from '../eventually.ts';
import { NodeUnderTest, settingsOf } from './harness.ts';
import { A, A6, B, B6 } from './scene.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);

const nft = (script: string): string => run('nft', script);
const listing = (family: 'ip' | 'ip6' = 'ip'): string => run('nft', 'list', 'table', family, 'kube-proxy');

const ranges = (cidrs: readonly string[]): number => mergeRanges(cidrs).length;

/** One service port of every kind. */
const everything = [
  planOf({ clusterIP: '10.96.0.1', nodePort: 30001, externalIPs: ['192.0.2.99'] }, [A, B]),
  planOf({ clusterIP: '10.96.0.2', name: 'local', nodePort: 30002, externalPolicyLocal: true }, [A, B]),
  planOf({ clusterIP: '10.96.0.3', name: 'sticky', nodePort: 30003, affinitySeconds: 60 }, [A, B]),
  planOf({ clusterIP: '10.96.0.4', name: 'none', nodePort: 30004, protocol: 'UDP' }, []),
  planOf(
    {
      clusterIP: '10.96.0.5',
      name: 'guarded',
      loadBalancerVIPs: ['198.18.0.1'],
      sourceRanges: ['10.0.0.0/8'],
    },
    [A],
  ),
];
const withoutRanges = everything.filter(({ port }) => port.sourceRanges.length === 0);
const everything6 = [
  planOf({ clusterIP: 'fd00:96::1', nodePort: 30001, externalPolicyLocal: true }, [A6, B6]),
  planOf({ clusterIP: 'fd00:96::3', name: 'sticky', affinitySeconds: 10800, nodePort: 30003 }, [A6, B6]),
  planOf(
    { clusterIP: 'fd00:96::5', name: 'guarded', loadBalancerVIPs: ['fd00::1'], sourceRanges: ['fd00::/56'] },
    [A6],
  ),
];

/** The order of rules' and sets' creation does not matter. */
const sorted = (text: string): string => text.split('\n').sort().join('\n');

/** Name, type, hook, priority and policy of every base chain. */
function baseChains(): string[] {
  const { nftables } = JSON.parse(run('nft', '-j', 'list', 'chains')) as {
    nftables: { chain?: { name: string; type?: string; hook?: string; prio?: number; policy?: string } }[];
  };
  const bases = nftables.flatMap(({ chain }) => (chain?.hook ? [chain] : []));
  return bases
    .map(({ name, type, hook, prio, policy }) => `${name} ${type} ${hook} ${prio} ${policy}`)
    .sort();
}

/** The first transaction of upstream when it takes a table over, abridged. */
function upstreamTakeOver(): string {
  const bases = {
    'filter-prerouting-pre-dnat': 'filter hook prerouting priority -110',
    'filter-output-pre-dnat': 'filter hook output priority -110',
    'nat-prerouting': 'nat hook prerouting priority -100',
    'nat-output': 'nat hook output priority -100',
    'filter-input': 'filter hook input priority 0',
    'filter-forward': 'filter hook forward priority 0',
    'filter-output': 'filter hook output priority 0',
    'nat-postrouting': 'nat hook postrouting priority 100',
  };
  const vip = 'type ipv4_addr . inet_proto . inet_service : verdict;';
  const port = 'type inet_proto . inet_service : verdict;';
  const loopback = 'localhost-nodeport-reject-tcp';
  return [
    'add table ip kube-proxy { comment "rules for kube-proxy"; }',
    ...Object.entries(bases).flatMap(([name, hook]) => [
      `add chain ip kube-proxy ${name} { type ${hook}; }`,
      `flush chain ip kube-proxy ${name}`,
      `delete chain ip kube-proxy ${name}`,
      `add chain ip kube-proxy ${name} { type ${hook}; }`,
    ]),
    'add set ip kube-proxy cluster-ips { type ipv4_addr; }',
    'add set ip kube-proxy nodeport-ips { type ipv4_addr; }',
    'add set ip kube-proxy hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }',
    ...['service-ips', 'no-endpoint-services', 'firewall-ips'].map(
      (m) => `add map ip kube-proxy ${m} { ${vip} }`,
    ),
    ...['service-nodeports', 'no-endpoint-nodeports'].map((m) => `add map ip kube-proxy ${m} { ${port} }`),
    'add chain ip kube-proxy services',
    'add rule ip kube-proxy nat-prerouting jump services',
    'add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips',
    `add chain ip kube-proxy ${loopback}`,
    `flush chain ip kube-proxy ${loopback}`,
    `delete chain ip kube-proxy ${loopback}`,
  ].join('\n');
}

describe('nftables table', { skip }, () => {
  let node: NodeUnderTest | undefined;

  beforeEach(async () => {
    node?.close();
    node = await NodeUnderTest.open();
    nft('flush ruleset');
  });

  after(() => node?.close());

  const current = (): NodeUnderTest => {
    assert.ok(node);
    return node;
  };

  test('stock nft lists the whole table, in both families and as JSON', async () => {
    await current().program(everything, { localhostNodePorts: true });
    await current().program(everything6, { localhostNodePorts: true });
    for (const line of [
      '10.96.0.1 . tcp . 80 comment "default/web" : 0:1',
      '0:1 : goto cluster-pick-2',
      'meta priority set ip daddr . meta l4proto . th dport map @frontends meta priority vmap @handlers',
      '10.96.0.1 . tcp . 80 . 0 : 10.244.1.21 . 8080',
      'dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints',
      'ip daddr . meta l4proto . th dport . ip saddr & 255.0.0.0 @sources-8 return',
      'ip saddr != 10.244.1.0/24 meta mark set meta mark | 0x00004000',
      'elements = { 10.96.0.0/16 }',
    ]) {
      assert.ok(listing().includes(line), `nft does not show: ${line}`);
    }
    assert.ok(listing('ip6').includes('fd00:96::1 . tcp . 80 . 0 : fd00:244:1::21 . 8080'));
    assert.ok(JSON.parse(run('nft', '-j', 'list', 'ruleset')).nftables.length > 50);
  });

  test('the base chains have the names, hooks and priorities that upstream takes over; those that check source ranges exist only with one', async () => {
    const always = [
      'filter-forward filter forward 0 accept',
      'filter-input filter input 0 accept',
      'filter-output filter output 0 accept',
      'nat-output nat output -100 accept',
      'nat-postrouting nat postrouting 100 accept',
      'nat-prerouting nat prerouting -100 accept',
    ];
    const guards = [
      'filter-output-pre-dnat filter output -110 accept',
      'filter-prerouting-pre-dnat filter prerouting -110 accept',
    ];
    await current().program(withoutRanges);
    assert.deepEqual(baseChains(), always);
    await current().program(everything);
    assert.deepEqual(baseChains(), [...always, ...guards].sort());
    await eventually('the end of the chains that check source ranges', async () => {
      await current().program(withoutRanges, {}, 'all');
      return !baseChains().some((chain) => guards.includes(chain));
    });
    assert.deepEqual(baseChains(), always);
  });

  test('a table from a version that always checked source ranges loses the check, and keeps the rest', async () => {
    await current().program(withoutRanges);
    const before = listing();
    nft(
      ['prerouting', 'output']
        .map(
          (
            hook,
          ) => `add chain ip kube-proxy filter-${hook}-pre-dnat { type filter hook ${hook} priority -110; }
            add rule ip kube-proxy filter-${hook}-pre-dnat ct state new ip daddr . meta l4proto . th dport vmap @guarded`,
        )
        .join('\n'),
    );
    current().restart();
    await current().program(withoutRanges);
    assert.equal(current().elementOperations, 0);
    assert.equal(listing(), before);
  });

  test("names of our other objects differ from upstream's, do not begin like its affinity sets and have no slash", async () => {
    await current().program(everything, { localhostNodePorts: true });
    const names = [...listing().matchAll(/^\t(?:chain|set|map|counter) (\S+) \{/gm)].map(
      (match) => match[1] ?? '',
    );
    const reserved =
      /^(cluster-ips|nodeport-ips|hairpin-connections|service-ips|service-nodeports|no-endpoint-.*|firewall-ips|localhost-.*|services|masquerading|cluster-ips-check|service-endpoints-check|nodeport-endpoints-check|firewall-check|reject-chain|affinity-.*|.*\/.*)$/;
    assert.ok(names.length > 30);
    assert.deepEqual(
      names.filter((name) => reserved.test(name)),
      [],
    );
  });

  for (const [plans, which] of [
    [everything, 'with source ranges'],
    [withoutRanges, 'without source ranges'],
  ] as const) {
    test(`upstream can take over a table ${which}`, async () => {
      await current().program(plans, { localhostNodePorts: true });
      nft(upstreamTakeOver());
      // None of our sets has a prefix that upstream deletes, and packets reach none of our rules any more.
      assert.doesNotMatch(listing(), /set affinity-/);
      assert.doesNotMatch(listing(), /hook [\s\S]*(@frontends|@guarded|jump refuse)/);
    });
  }

  test('a table left by upstream is replaced as a whole', async () => {
    nft(
      `table ip kube-proxy {
      comment "rules for kube-proxy"
      set cluster-ips { type ipv4_addr; elements = { 10.96.0.9 }; }
      map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.9 . tcp . 80 : goto service-X }; }
      chain service-X { dnat to 10.0.0.1; }
      chain filter-prerouting { type filter hook prerouting priority -110; }
      chain nat-prerouting { type nat hook prerouting priority -100; ip daddr . meta l4proto . th dport vmap @service-ips; }
    }`,
    );
    await current().program(everything);
    assert.doesNotMatch(listing(), /service-X|cluster-ips|filter-prerouting \{/);
    assert.match(listing(), /goto cluster-pick-2/);
  });

  test('a table in the layout before this one is replaced as a whole, in one transaction', async () => {
    nft(
      `table ip kube-proxy {
      map frontends { type ipv4_addr . inet_proto . inet_service : verdict; comment "kube-proxy-ts layout 1"; elements = { 10.96.0.1 . tcp . 80 : goto cluster-pick-9 }; }
      map nodeports { type inet_proto . inet_service : verdict; }
      set cluster-addresses { type ipv4_addr; elements = { 10.96.0.1, 10.96.0.9 }; }
      chain cluster-pick-9 { dnat to 10.0.0.1; }
      chain cluster-pick-2 { dnat to 10.0.0.2; }
      chain dispatch { ip daddr . meta l4proto . th dport vmap @frontends; }
      chain nat-prerouting { type nat hook prerouting priority -100; jump dispatch; }
    }`,
    );
    const { id } = await current().kernel.nft.generation();
    await current().program(everything);
    assert.equal((await current().kernel.nft.generation()).id, id + 1);
    const replaced = listing();
    nft('flush ruleset');
    current().restart();
    await current().program(everything);
    assert.equal(sorted(listing()), sorted(replaced));
  });

  test('a table in which a set with our name has another type is replaced', async () => {
    await current().program(everything);
    nft(
      'flush chain ip kube-proxy nat-prerouting; flush chain ip kube-proxy nat-output; flush chain ip kube-proxy refuse-here; delete set ip kube-proxy node-addresses; add set ip kube-proxy node-addresses { type inet_service; }',
    );
    current().restart();
    await current().program(everything);
    assert.match(listing(), /set node-addresses \{\s+type ipv4_addr/);
  });

  test('a restart writes no element that is there already', async () => {
    await current().program(everything);
    const before = listing();
    current().restart();
    await current().program(everything);
    assert.equal(current().elementOperations, 0);
    assert.equal(listing(), before);
  });

  test('a restart removes what should not be there and adds what is missing', async () => {
    await current().program(everything);
    const before = listing();
    nft('add element ip kube-proxy cluster-addresses { 10.96.66.66 }');
    nft('delete element ip kube-proxy endpoints { 10.96.0.1 . tcp . 80 . 0 }');
    nft('add rule ip kube-proxy nat-output accept');
    current().restart();
    await current().program(everything);
    assert.equal(current().elementOperations, 2);
    assert.equal(sorted(listing()), sorted(before));
  });

  test('a base chain that another program moved to another priority is restored', async () => {
    await current().program(everything);
    nft(
      'delete chain ip kube-proxy nat-output; add chain ip kube-proxy nat-output { type nat hook output priority 50; }',
    );
    await current().program(everything, {}, 'all');
    assert.match(listing(), /hook output priority -100/);
  });

  test('a chain that checks source ranges and was moved to another priority is restored, also where none was wanted', async () => {
    const moved = (chain: string) =>
      `add chain ip kube-proxy ${chain} { type filter hook output priority 50; }`;
    await current().program(everything);
    const before = baseChains();
    nft(`delete chain ip kube-proxy filter-output-pre-dnat; ${moved('filter-output-pre-dnat')}`);
    await current().program(everything, {}, 'all');
    assert.deepEqual(baseChains(), before);
    await eventually('the end of the chains that check source ranges', async () => {
      await current().program(withoutRanges, {}, 'all');
      return !baseChains().some((chain) => chain.includes('pre-dnat'));
    });
    nft(moved('filter-prerouting-pre-dnat'));
    await current().program(everything);
    assert.deepEqual(baseChains(), before);
    const [complaint = '', ...others] = current().complaints.splice(0);
    assert.match(complaint, /^Partial sync refused; syncing everything/);
    assert.deepEqual(others, []);
  });

  test('any change of service networks leaves the table and its records in place', async () => {
    const tableHandle = () =>
      /^table .* # handle \d+$/m.exec(run('nft', '-a', 'list', 'table', 'ip', 'kube-proxy'))?.[0];
    const networks = [
      ['10.96.0.0/16', '10.97.0.0/16', '10.98.0.0/16'],
      ['10.96.0.0/16', '10.98.0.0/16'],
      ['10.96.0.0/12', '10.112.0.0/16', '10.113.0.0/16'],
      ['10.96.0.0/12', '10.113.0.0/16'],
      ['10.100.0.0/16'],
      [],
      ['10.96.0.0/16', '255.255.255.0/24'],
      ['255.255.0.0/16'],
      ['0.0.0.0/0'],
    ];
    const plans = plansByKey(...everything);
    const backend = current().backend('IPv4');
    await current().program(everything);
    const handle = tableHandle();
    for (const scope of [new Set<string>(), 'all'] as const) {
      for (const serviceCIDRs of [...networks, ...networks.toReversed()]) {
        await backend.sync({ plans, changed: scope, serviceCIDRs, totalEndpoints: 0 });
        const shown =
          /set service-ranges \{[^}]*?(?:elements = \{([^}]*)\})?\s*\}/.exec(listing())?.[1] ?? '';
        const listed = shown.split(',').map((range) => range.trim());
        assert.equal(
          listed.filter((range) => range !== '').length,
          ranges(serviceCIDRs),
          serviceCIDRs.join(),
        );
      }
    }
    assert.equal(tableHandle(), handle);
    assert.deepEqual(current().complaints, []);
  });

  test('a change costs a handful of element operations', async () => {
    const plan = (endpoints: (typeof A)[]) => [
      planOf({ clusterIP: '10.96.0.1', nodePort: 30001 }, endpoints),
    ];
    const many = Array.from({ length: 100 }, (_, i) => ({ ip: `10.244.3.${i}` }));
    await current().program(plan(many));
    // A number of endpoints that no service had before needs a new chain each for cluster IP and node port.
    await current().program(plan([...many, B]));
    assert.equal(current().elementOperations, 8);
    await current().program(plan(many));
    assert.equal(current().elementOperations, 6);
  });

  test('a partial sync rebuilds a missing table at once', async () => {
    await current().program(everything);
    nft('flush ruleset');
    const plans = plansByKey(...everything, planOf({ clusterIP: '10.96.0.7', name: 'new' }, [A]));
    const changed = new Set(['default/new/TCP']);
    await current().backend('IPv4').sync({ plans, changed, serviceCIDRs: [], totalEndpoints: 0 });
    assert.match(listing(), /10\.96\.0\.7/);
    assert.match(listing(), /10\.96\.0\.1 /);
    const [complaint = '', ...others] = current().complaints.splice(0);
    assert.match(complaint, /^Partial sync refused; syncing everything/);
    assert.deepEqual(others, []);
  });

  test('unused shared chains are removed by the next full sync', async () => {
    await current().program([planOf({ clusterIP: '10.96.0.1' }, [A, B])]);
    await current().program([planOf({ clusterIP: '10.96.0.1' }, [A])]);
    assert.match(listing(), /chain cluster-pick-2/);
    // Before kernel 6.2 a chain counts as used a moment longer; the next full sync then removes it.
    await eventually('the end of the chain', async () => {
      await current().program([planOf({ clusterIP: '10.96.0.1' }, [A])], {}, 'all');
      return !listing().includes('chain cluster-pick-2');
    });
    assert.match(listing(), /chain cluster-pick-1/);
  });

  test('shared chains and sets of sources that are unused for a minute are removed', async () => {
    const guarded = {
      clusterIP: '10.96.0.1',
      loadBalancerVIPs: ['198.18.0.1'],
      externalPolicyLocal: true,
      sourceRanges: ['203.0.113.0/24'],
    };
    await current().program([planOf(guarded, [A, B])]);
    assert.match(listing(), /chain split-pick-2/);
    await current().program([planOf({ clusterIP: '10.96.0.1' }, [A])]);
    assert.match(listing(), /set sources-24/);
    await eventually('the end of chains, handlers and sets', async () => {
      await current().clock.advance(10_000);
      return !/pick-2|sources-24/.test(listing());
    });
    assert.match(listing(), /chain cluster-pick-1/);
    await current().program([planOf(guarded, [A, B])]);
    assert.match(listing(), /198\.18\.0\.1 \. tcp \. 80 \. 203\.0\.113\.0/);
  });

  for (const [family, plans, serviceCIDRs] of [
    ['IPv4', everything, ['10.96.0.0/16']],
    ['IPv6', everything6, ['fd00:96::/112']],
  ] as const) {
    test(`departed endpoints have a set and a rule while there are any; without them the table is as before, ${family}`, async () => {
      const name = family === 'IPv4' ? 'ip' : 'ip6';
      const endpoint = family === 'IPv4' ? '10.244.9.9' : 'fd00:244:9::9';
      const other = family === 'IPv4' ? '10.244.9.10' : 'fd00:244:9::10';
      const sync = (ips: readonly string[], changed: 'all' | Set<string> = new Set<string>()) =>
        current()
          .backend(family)
          .sync({
            plans: plansByKey(...plans),
            changed,
            serviceCIDRs,
            totalEndpoints: 0,
            departed: new Map(ips.map((ip) => [`${ip}:80`, { ip, port: 80 }])),
          });
      const elements = () => [...listing(name).matchAll(/(\S+) \. 80 expires/g)].map(([, ip]) => ip).sort();
      await sync([], 'all');
      const before = listing(name);
      await sync([endpoint]);
      assert.deepEqual(elements(), [endpoint]);
      const rule = `ct status dnat ct direction original ${name} daddr . tcp dport @departed tcp flags ! rst reject with tcp reset`;
      assert.equal(listing(name).split(rule).length, 3);
      await sync([endpoint, other]);
      await sync([other]);
      assert.deepEqual(elements(), [other]);
      await sync([other, endpoint], 'all');
      assert.deepEqual(elements(), [endpoint, other].sort());
      assert.equal(current().elementOperations, 1);
      current().restart();
      await sync([other], 'all');
      assert.deepEqual(elements(), [other]);
      await sync([]);
      assert.equal(sorted(listing(name)), sorted(before));
      await sync([other]);
      current().restart();
      await sync([], 'all');
      assert.equal(sorted(listing(name)), sorted(before));
    });
  }

  test('clean-up removes both tables, and succeeds when there are none', async () => {
    await current().program(everything);
    await current().program(everything6);
    nft('add table ip other');
    const cleanUp = { logger: silentLogger, scope: 'clean-up' } as const;
    const found = await nftablesMode.leftovers.find(cleanUp);
    assert.deepEqual(
      found.map(({ kind, name }) => `${kind} ${name}`),
      ['nf_tables table ip kube-proxy', 'nf_tables table ip6 kube-proxy'],
    );
    await nftablesMode.leftovers.remove(cleanUp);
    assert.equal(run('nft', 'list', 'tables').trim(), 'table ip other');
    await nftablesMode.leftovers.remove(cleanUp);
  });

  test('changes by other programs are reported with their author, our own are not, and node addresses are followed', async () => {
    let requests = 0;
    const registry = new Registry({ clock: systemClock, onCollectError: assert.fail });
    const settings = settingsOf('IPv4', { nodePortAddresses: ['198.51.100.0/24'] });
    const backend = await nftablesMode.create({
      ...settings,
      config: defaultConfig(),
      gateEnabled: () => false,
      metrics: createProxyMetrics(registry, ['partial syncs', 'nftables transactions', 'repairs']),
      budget: new RepairBudget(systemClock, () => 0),
      logger: silentLogger,
      clock: systemClock,
      requestSync: () => {
        requests++;
      },
    });
    const requested = async (count: number): Promise<void> => {
      await eventually(`request number ${count}`, () => requests >= count, { everyMs: 20 });
      assert.equal(requests, count);
    };
    const sync = (changed: 'all' | Set<string>) =>
      backend.sync({ plans: plansByKey(...everything), changed, serviceCIDRs: [], totalEndpoints: 0 });
    try {
      await sync('all');
      nft('add table ip other');
      await sleep(200);
      await requested(0);
      nft('flush ruleset');
      await requested(1);
      // After a report, even a partial sync reads the table again.
      await sync(new Set());
      assert.match(listing(), /goto cluster-pick-2/);
      nft('delete element ip kube-proxy cluster-addresses { 10.96.0.1 }');
      await requested(2);
      await sync('all');
      assert.match(listing(), /10\.96\.0\.1,/);
      assert.doesNotMatch(listing(), /198\.51\.100\.77/);
      run('ip', 'addr', 'add', '198.51.100.77/32', 'dev', 'lo');
      await requested(3);
      await sync('all');
      assert.match(listing(), /198\.51\.100\.77/);
    } finally {
      await backend.close();
    }
  });
});
