import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EndpointParts, ServicePortParts } from '../../../test/cluster/objects.ts';
import { planOf } from '../../../test/cluster/plans.ts';
import { describeElement } from '../../kernel/nft/describe-element.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { distinctFrontends } from '../../plan/frontend.ts';
import { portBytes, wordBytes } from './bytes.ts';
import { chainsOf, elementsOf } from './compile.ts';
import { encodeElement } from './element-codec.ts';
import { HandlerNumbers } from './handler-numbers.ts';
import { setDefinition, valueKindOf } from './layout.ts';
import { nowhere, place } from './placement.ts';
import type { NftablesSettings } from './settings.ts';
import { StickyNumbers } from './sticky-numbers.ts';

const settings: NftablesSettings = {
  family: 'IPv4',
  masqueradeBit: 14,
  masqueradeAll: false,
  localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
  nodePortAddresses: nodePortAddresses('IPv4', ['192.0.2.10/32']),
  nodeIP: '192.0.2.10',
  localhostNodePorts: false,
};

const a: EndpointParts = { ip: '10.244.1.21', local: true };
const b: EndpointParts = { ip: '10.244.2.21' };

/** Elements in the words of `nft list`, with the name of a chain in place of its number. */
function elements(parts: ServicePortParts, endpoints: readonly EndpointParts[], with_ = settings): string[] {
  const plan = planOf(parts, endpoints);
  const placement = place(plan, distinctFrontends(plan), nowhere, new StickyNumbers());
  const handlers = new HandlerNumbers();
  const names = new Map(chainsOf(placement, with_).map((name) => [wordBytes(handlers.of(name)), name]));
  const found: string[] = [];
  elementsOf(placement, with_, handlers, (set, key, value) => {
    const text = describeElement(setDefinition(plan.port.family, set), encodeElement(set, key, value));
    const name = valueKindOf(set) === 'number' ? names.get(value.slice(0, 4)) : undefined;
    found.push(name === undefined ? text : text.replace(/: \S+$/, `: ${name}`));
  });
  return found;
}

const web: ServicePortParts = { clusterIP: '10.96.0.41' };

describe('cluster IP', () => {
  test('a cluster IP with two endpoints has one frontend and two slots', () => {
    assert.deepEqual(elements(web, [a, b]), [
      'frontends 10.96.0.41 . tcp . 80 : cluster-pick-2',
      'endpoints 10.96.0.41 . tcp . 80 . 0 : 10.244.1.21 . 8080',
      'endpoints 10.96.0.41 . tcp . 80 . 1 : 10.244.2.21 . 8080',
    ]);
  });

  test('a cluster IP without endpoints is rejected', () => {
    assert.deepEqual(elements(web, []), ['refused 10.96.0.41 . tcp . 80 : goto reject-packet']);
  });

  test('a cluster IP with policy Local serves from the local list', () => {
    assert.deepEqual(elements({ ...web, internalPolicyLocal: true, protocol: 'UDP', port: 53 }, [a, b]), [
      'frontends 10.96.0.41 . udp . 53 : cluster-pick-local-1',
      'endpoints 10.96.0.41 . udp . 53 . 1000000000 : 10.244.1.21 . 8080',
    ]);
  });

  test('a cluster IP with policy Local and remote endpoints only is dropped', () => {
    assert.deepEqual(elements({ ...web, internalPolicyLocal: true }, [b]), [
      'refused 10.96.0.41 . tcp . 80 : drop',
    ]);
  });

  test('an IPv6 cluster IP has the same elements with longer addresses', () => {
    const v6 = elements({ clusterIP: 'fd00:96::41' }, [{ ip: 'fd00:244:1::21' }]);
    assert.deepEqual(v6, [
      'frontends fd00:96::41 . tcp . 80 : cluster-pick-1',
      'endpoints fd00:96::41 . tcp . 80 . 0 : fd00:244:1::21 . 8080',
    ]);
  });
});

describe('external addresses', () => {
  const external = { ...web, externalIPs: ['192.0.2.99'], nodePort: 30080 };

  test('an external address with policy Cluster serves from all endpoints', () => {
    assert.deepEqual(elements(external, [b]).slice(2), [
      'frontends 192.0.2.99 . tcp . 80 : external-pick-1',
      'endpoints 192.0.2.99 . tcp . 80 . 0 : 10.244.2.21 . 8080',
      'nodeports tcp . 30080 : external-nodeport-1',
      'nodeport-endpoints tcp . 30080 . 0 : 10.244.2.21 . 8080',
    ]);
  });

  test('an external address with policy Local keeps both lists', () => {
    assert.deepEqual(elements({ ...external, externalIPs: [], externalPolicyLocal: true }, [a, b]).slice(3), [
      'nodeports tcp . 30080 : split-nodeport-2-or-nodeport-local-1',
      'nodeport-endpoints tcp . 30080 . 0 : 10.244.1.21 . 8080',
      'nodeport-endpoints tcp . 30080 . 1 : 10.244.2.21 . 8080',
      'nodeport-endpoints tcp . 30080 . 1000000000 : 10.244.1.21 . 8080',
    ]);
  });

  test('no key repeats when there are more than 100,000 endpoints and a list of local ones', () => {
    const plan = planOf({ ...external, externalPolicyLocal: true }, [a, b]);
    const target = (n: number) => wordBytes(n) + portBytes(8080);
    const cluster = Array.from({ length: 100_001 }, (_, i) => target(i));
    const placement = { plan, frontends: distinctFrontends(plan), cluster, local: [target(0)] };
    const keys = new Set<string>();
    let count = 0;
    elementsOf(placement, settings, new HandlerNumbers(), (set, key) => {
      keys.add(`${set} ${key}`);
      count++;
    });
    assert.equal(keys.size, count);
  });

  test('an external address with policy Local and no local endpoint serves pods and the node only', () => {
    assert.deepEqual(elements({ ...external, nodePort: 0, externalPolicyLocal: true }, [b]).slice(2), [
      'frontends 192.0.2.99 . tcp . 80 : split-pick-1',
      'refused 192.0.2.99 . tcp . 80 : drop',
      'endpoints 192.0.2.99 . tcp . 80 . 0 : 10.244.2.21 . 8080',
    ]);
  });

  test('an address that is both external IP and load balancer IP is one frontend', () => {
    const parts = { ...web, externalIPs: ['198.18.0.1'], loadBalancerVIPs: ['198.18.0.1'] };
    const frontends = elements(parts, [b]).filter((element) => element.startsWith('frontends 198'));
    assert.equal(frontends.length, 1);
  });
});

describe('source ranges', () => {
  const guarded = { ...web, loadBalancerVIPs: ['198.18.0.2'], nodePort: 30082 };
  const ranged = (sourceRanges: string[]): string[] =>
    elements({ ...guarded, sourceRanges }, [a]).filter((element) => /^(guarded|sources)/.test(element));

  test('only the load balancer address is guarded', () => {
    assert.deepEqual(ranged(['203.0.113.0/25']), [
      'guarded 198.18.0.2 . tcp . 80 : goto sources-25',
      'sources-25 198.18.0.2 . tcp . 80 . 203.0.113.0',
    ]);
  });

  test('overlaps and repetitions are kept apart by prefix length, longest first', () => {
    assert.deepEqual(ranged(['10.0.0.0/8', '10.1.0.0/16', '10.1.0.0/16']), [
      'guarded 198.18.0.2 . tcp . 80 : goto sources-16-8',
      'sources-8 198.18.0.2 . tcp . 80 . 10.0.0.0',
      'sources-16 198.18.0.2 . tcp . 80 . 10.1.0.0',
    ]);
  });

  test('a range with the node in it allows the load balancer address as a source', () => {
    assert.deepEqual(ranged(['192.0.2.0/24']), [
      'guarded 198.18.0.2 . tcp . 80 : goto sources-32-24',
      'sources-24 198.18.0.2 . tcp . 80 . 192.0.2.0',
      'sources-32 198.18.0.2 . tcp . 80 . 198.18.0.2',
    ]);
  });

  test('source ranges hold without endpoints, too', () => {
    const without = elements({ ...guarded, sourceRanges: ['203.0.113.0/25'] }, []);
    assert.ok(without.includes('guarded 198.18.0.2 . tcp . 80 : goto sources-25'));
    assert.ok(without.includes('refused 198.18.0.2 . tcp . 80 : goto reject-packet'));
  });
});

test('client affinity: one service number, members numbered once, slots per list', () => {
  const parts = { ...web, nodePort: 30080, affinitySeconds: 60, externalPolicyLocal: true };
  assert.deepEqual(elements(parts, [a, b]), [
    'frontends 10.96.0.41 . tcp . 80 : cluster-sticky-2-60s',
    'sticky-services 10.96.0.41 . tcp . 80 : 1:0',
    'nodeports tcp . 30080 : split-sticky-2-60s-or-sticky-local-1-60s',
    'sticky-nodeports tcp . 30080 : 1:0',
    'sticky-slots 1:0 . 0 : 1:2',
    'sticky-slots 1:0 . 1 : 1:3',
    'sticky-members 1:2 : 10.244.1.21 . 8080',
    'sticky-members 1:3 : 10.244.2.21 . 8080',
    'sticky-slots 1:1 . 0 : 1:2',
    'sticky-local-members 1:2 : 10.244.1.21 . 8080',
  ]);
});

describe('node ports on loopback', () => {
  const loopback = (protocol: 'TCP' | 'UDP' | 'SCTP', addresses: string[]): string[] => {
    const with_ = {
      ...settings,
      localhostNodePorts: true,
      nodePortAddresses: nodePortAddresses('IPv4', addresses),
    };
    return elements({ ...web, protocol, nodePort: 30080 }, [a], with_).filter((e) =>
      e.startsWith('loopback'),
    );
  };

  test('node ports on loopback are rejected with the gate on', () => {
    assert.deepEqual(loopback('TCP', []), ['loopback-nodeports tcp . 30080 : goto loopback-tcp']);
  });

  test('TCP and UDP are served where the configuration names loopback', () => {
    assert.deepEqual(loopback('TCP', ['127.0.0.0/8']), []);
    assert.deepEqual(loopback('UDP', ['127.0.0.0/8']), []);
    assert.deepEqual(loopback('SCTP', ['127.0.0.0/8']), [
      'loopback-nodeports sctp . 30080 : goto loopback-sctp',
    ]);
  });
});
