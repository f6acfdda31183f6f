import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../../../test/cluster/plans.ts';
import { FakeNft } from '../../../../test/nftables/fake-nft.ts';
import type { Expr } from '../../../kernel/nft/expr.ts';
import type { Rule } from '../../../kernel/nft/objects.ts';
import { nodePortAddresses } from '../../../model/node-port-addresses.ts';
import type { ServicePlan } from '../../../plan/service-plan.ts';
import type { Packet } from '../../inspection.ts';
import { servableFrontends } from '../frontends.ts';
import { elementsOf } from '../portals/elements.ts';
import { portalTable } from '../portals/layout.ts';
import { Portals } from '../portals/portals.ts';
import { portalChains } from '../portals/rules.ts';
import type { UserspaceSettings } from '../settings.ts';
import { askPortals, comparePortals, type PortalInspectionOptions } from './portal-inspection.ts';

const settings: UserspaceSettings = {
  family: 'IPv4',
  hostIP: '192.0.2.5',
  nodeIP: '192.0.2.5',
  localDetector: { kind: 'prefix', prefix: 'pod-' },
  nodePortAddresses: nodePortAddresses('IPv4', []),
  portRange: { first: 40_000, last: 40_009 },
  choice: 'round-robin',
  keepsSource: false,
  masqueradeAll: false,
};
const table = portalTable('IPv4');
const proxyPorts = new Map([
  ['cluster', 40_000],
  ['local', 40_001],
] as const);

/** The table of portals in memory, with its rules and one more in front of a chain. */
class TableInMemory extends FakeNft {
  extra: { readonly chain: string; readonly exprs: readonly Expr[] } | undefined;

  override async listRules(): Promise<Rule[]> {
    if (this.chainNames.length === 0) return [];
    return portalChains(settings).flatMap(({ name, rules }) => {
      const extra = this.extra?.chain === name ? [this.extra.exprs] : [];
      return [...extra, ...rules].map((exprs) => ({ chain: { table, name }, exprs }));
    });
  }
}

async function open(...plans: readonly ServicePlan[]) {
  const nft = new TableInMemory();
  const elements = plans.flatMap((plan) =>
    elementsOf({ plan, frontends: servableFrontends(plan), proxyPorts }, settings),
  );
  if (plans.length > 0) await new Portals(settings, nft).replace(elements);
  const addresses = { list: async () => ['192.0.2.5'], watch: () => ({ close() {} }), close() {} };
  const options: PortalInspectionOptions = { settings, kernel: { nft, addresses }, running: undefined };
  return { nft, options };
}

function packet(parts: Partial<Packet>): Packet {
  const origin = { interface: 'eth0' };
  const base = { family: 'IPv4', protocol: 'TCP', source: '203.0.113.9', destination: '10.96.0.1' } as const;
  return { ...base, port: 80, origin, ...parts };
}

const lookedAt = 'table ip kube-proxy-userspace and the listeners of this process';
const here = { ip: '10.244.1.5', local: true };
const local = planOf(
  { clusterIP: '10.96.0.1', nodePort: 30_080, externalPolicyLocal: true, externalIPs: ['198.51.100.7'] },
  [here, { ip: '10.244.2.5' }],
);

test('where nothing runs everything is missing, and a comparison opens and writes nothing', async () => {
  const { nft, options } = await open();
  const request = { plans: plansByKey(local), serviceCIDRs: ['10.96.0.0/16'], totalEndpoints: 2 };
  const differences = await comparePortals(request, options);
  assert.ok(differences.every(({ found }) => found === undefined));
  assert.deepEqual(
    differences
      .filter(({ kind }) => kind === 'listener' || kind === 'element' || kind === 'table')
      .map(({ service = '-', kind, object, wanted }) => `${service} ${kind} ${object}: ${wanted}`)
      .filter((line) => !/near|nodeports/.test(line)),
    [
      '- table ip kube-proxy-userspace: present',
      'default/web/TCP listener default/web/TCP cluster: 192.0.2.5:40000-40009/TCP',
      'default/web/TCP listener default/web/TCP local: 192.0.2.5:40000-40009/TCP',
      '- element service-ranges 10.96.0.0: present',
      '- element service-ranges before 10.97.0.0: present',
      ...['10.96.0.1', '198.51.100.7'].map(
        (ip) =>
          `default/web/TCP element portals ${ip} . tcp . 80: the port of a socket to be opened comment "default/web"`,
      ),
      'default/web/TCP element cluster-addresses 10.96.0.1: present',
    ],
  );
  assert.deepEqual(nft.batches, []);
});

test('who listens in another process cannot be told, and that is said', async () => {
  const { options } = await open(local);
  const ask = (parts: Partial<Packet>) => askPortals(packet(parts), options);
  await assert.rejects(ask({}), /packets are sent to 192\.0\.2\.5:40000\/TCP, and who listens there/);
  const outside = { destination: '198.51.100.7' };
  await assert.rejects(ask(outside), /192\.0\.2\.5:40001\/TCP/);
  await assert.rejects(ask({ ...outside, origin: { interface: 'pod-7' } }), /192\.0\.2\.5:40000\/TCP/);
  await assert.rejects(ask({ ...outside, source: '192.0.2.5', origin: 'node' }), /192\.0\.2\.5:40000\/TCP/);
  await assert.rejects(ask({ destination: '192.0.2.5', port: 30_080 }), /192\.0\.2\.5:40001\/TCP/);
});

test('packets that no service is concerned with pass, by their protocol, port or address', async () => {
  const { options } = await open(local);
  for (const parts of [
    { destination: '198.51.100.7', protocol: 'UDP' },
    { destination: '192.0.2.5', port: 30_081 },
    { destination: '203.0.113.77' },
  ] as const) {
    assert.deepEqual(await askPortals(packet(parts), options), {
      fate: { action: 'pass' },
      evidence: [],
      lookedAt,
    });
  }
  const { fate } = await askPortals(packet({ port: 81 }), options);
  assert.deepEqual(fate, { action: 'reject' });
});

test('a foreign rule that is not understood leaves the answer open and is named, one that is understood decides', async () => {
  const { nft, options } = await open(planOf({ clusterIP: '10.96.0.1' }));
  nft.extra = {
    chain: 'filter-prerouting',
    exprs: [
      { kind: 'meta', key: 'oifname', dreg: 0 },
      { kind: 'verdict', verdict: { kind: 'drop' } },
    ],
  };
  const rule = /chain filter-prerouting has a rule that is not understood: \[ meta .*oifname \] \[ drop \]/;
  await assert.rejects(askPortals(packet({}), options), rule);
  nft.extra = { chain: 'refuse', exprs: [{ kind: 'verdict', verdict: { kind: 'drop' } }] };
  assert.deepEqual(await askPortals(packet({}), options), {
    fate: { action: 'drop' },
    evidence: ['chain refuse: drop'],
    lookedAt,
  });
});
