import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { ServiceSpec } from '../../contract/story.ts';
import { Model } from './model.ts';
import type { SoakPacket } from './packet.ts';

const web: ServiceSpec = { protocols: ['TCP', 'UDP'], nodePort: true, endpoints: ['A', 'node'] };
const packet: SoakPacket = { n: 1, family: 'IPv4', from: 'pod', to: 'clusterIP', transport: 'tcp' };

describe('what a client may see', () => {
  let now: number;
  let model: Model;

  function modelOf(mode: string): Model {
    now = 0;
    const built = new Model(mode, () => now);
    built.setService(1, web);
    settle(built);
    return built;
  }

  /** A Service that was put now is served one moment later. */
  function settle(settled: Model): void {
    const putBy = now;
    now += 10;
    settled.settleServices(putBy);
    now += 10;
  }

  const seen = (to: Partial<SoakPacket> = {}) => [...model.promises({ ...packet, ...to }, now, now)].sort();

  beforeEach(() => {
    model = modelOf('nftables');
  });

  test('an endpoint that left may answer until the change is known to be in effect, and not later', () => {
    assert.deepEqual(seen(), ['A', 'node']);
    model.setEndpoints(1, ['B', 'node']);
    assert.deepEqual(seen(), ['A', 'B', 'node']);
    settle(model);
    assert.deepEqual(seen(), ['B', 'node']);
  });

  test('slices change one after the other, so that for a moment there may be no endpoint', () => {
    model.setEndpoints(1, ['A']);
    settle(model);
    model.setEndpoints(1, ['node']);
    assert.deepEqual(seen(), ['A', 'REJECT', 'node']);
  });

  test('a connection that began before a change is in effect may see the state before', () => {
    const begin = now;
    model.setService(1, undefined);
    settle(model);
    assert.ok(model.promises(packet, begin, now).has('A'));
    assert.equal(model.promises(packet, now, now).has('A'), false);
  });

  test('a node port is served where the mode and the Node object say', () => {
    model.setNode({ address: 'nodeSecond' });
    model.settleNode(now);
    now += 10;
    assert.equal(seen({ to: 'nodePort' }).includes('A'), false);
    assert.deepEqual(seen({ to: 'second' }), ['A', 'node']);
    model = modelOf('iptables');
    assert.deepEqual(seen({ to: 'second' }), ['A', 'node']);
  });

  test('a tolerance explains only connections of its time, and only in its modes', () => {
    const explained = () => model.explanation('RESET', new Set(['A']), now, now);
    assert.equal(explained(), undefined);
    const end = model.tolerate('flush');
    assert.equal(explained(), 'flush');
    end();
    now += 10;
    assert.equal(explained(), undefined);
    model.tolerate('away');
    assert.equal(explained(), undefined);
    model = modelOf('userspace');
    model.tolerate('away');
    assert.equal(explained(), 'away');
  });

  test('between two tables of iptables a packet may be left alone, but not reach an endpoint that it must not', () => {
    model = modelOf('iptables');
    const explained = (outcome: string, promises: string[]) =>
      model.explanation(outcome, new Set(promises), now, now);
    assert.equal(explained('RESET', ['REJECT', 'A']), 'tables');
    assert.equal(explained('B', ['REJECT', 'A']), undefined);
    assert.equal(explained('RESET', ['A', 'B']), undefined);
    model = modelOf('nftables');
    assert.equal(explained('RESET', ['REJECT', 'A']), undefined);
  });
});
