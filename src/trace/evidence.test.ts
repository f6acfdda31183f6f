import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headers, marked, observer, step, TRACER } from '../../test/trace/recorded-steps.ts';
import type { Expr } from '../kernel/nft/expr.ts';
import type { ListedRule } from '../kernel/nft/objects.ts';
import type { TraceStep } from '../kernel/nft/trace.ts';
import { type AskedAbout, evidenceOf, type KernelFacts, type ProxyKnowledge } from './evidence.ts';
import { journeysOf } from './journey.ts';

const before = headers('10.244.1.5', '10.96.0.10', [40_000, 80]);
const reject: Expr = { kind: 'reject', type: 'icmpx-unreach', code: 1 };

function rule(handle: bigint, exprs: readonly Expr[], comment?: string): ListedRule {
  const chain = { table: { family: 'inet', name: 'firewall' }, name: 'forward' } as const;
  return { chain, handle, exprs, ...(comment !== undefined && { comment }) };
}

const kernel: KernelFacts = {
  rules: { listChainRules: async () => [rule(11n, []), rule(12n, [reject], 'stay')] },
  route: { interfaceTowards: async () => '', listAddresses: async () => [] },
  files: {
    read() {
      throw new Error('no file');
    },
    write() {},
  },
  interfaces: new Map([[3, 'veth3']]),
};

/** A proxy that remembers what it was asked. */
function proxy(asked: AskedAbout[] = []): ProxyKnowledge {
  const planned = {
    service: 'shop/web:http/TCP',
    frontend: null,
    fate: {
      action: 'forward',
      targets: [{ endpoint: '[fd00::7]:80', probability: 1, masquerade: false }],
      affinitySeconds: 0,
    },
    reasons: [],
  } as const;
  return {
    isOurs: (_family, table) => table === 'kube-proxy',
    ownerOf: (chain) => (chain === 'KUBE-FIREWALL' ? 'the kubelet' : undefined),
    explain: async (packet) => {
      asked.push(packet);
      return { planned };
    },
  };
}

function evidence(steps: readonly TraceStep[], knowledge: ProxyKnowledge = proxy()) {
  const [journey] = journeysOf(steps, TRACER);
  assert.ok(journey);
  return evidenceOf(journey, 'unknown', knowledge, kernel);
}

test('kube-proxy is asked about the packet as it came, with its interface', async () => {
  const asked: AskedAbout[] = [];
  const { decision } = await evidence([marked({ ...before, inInterface: 3 })], proxy(asked));
  assert.equal(decision?.service, 'shop/web:http/TCP');
  const packet = { source: '10.244.1.5', destination: '10.96.0.10', port: 80, protocol: 'TCP' } as const;
  assert.deepEqual(asked, [{ ...packet, interface: 'veth3' }]);
  await evidence([marked(before)], proxy(asked));
  assert.deepEqual(asked[1], packet);
});

test('the rule that stopped a packet is read for its comment and whether it rejects', async () => {
  const stop = (table: string, handle: bigint) =>
    step(table, 'forward', { family: 'inet', ruleHandle: handle, verdict: { kind: 'drop' }, ...before });
  const found = await evidence([marked(before), stop('firewall', 12n)]);
  assert.deepEqual([found.rule, found.isOurs], [{ comment: 'stay', isReject: true }, false]);
  const gone = await evidence([marked(before), stop('kube-proxy', 99n)]);
  assert.deepEqual([gone.rule, gone.isOurs], [undefined, true]);
});

test('of a packet that got lost at output, the routes to its possible endpoints are looked up', async () => {
  const { causes } = await evidence([marked(before), observer('output-first', {})]);
  assert.equal(causes[0], 'a missing route: none leads to fd00::7');
});
