import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import type { ClientBinding } from '../backends/inspection.ts';
import { LongestBindings, readAffinityQuestion } from './affinity.ts';
import { QuestionError } from './question.ts';

const question = (query: Readonly<Record<string, string>>) =>
  readAffinityQuestion((name) => query[name] ?? null);

const view = {
  family: 'IPv4',
  plans: plansByKey(planOf({ clusterIP: '10.96.0.1', namespace: 'shop', name: 'web', portName: 'http' })),
  placements: () => ({ byEndpoint: new Map([['10.244.1.5:8080', { pod: 'shop/web-0' }]]), slices: [] }),
} as const;

function binding(client: string, secondsLeft: number, endpoint = '10.244.1.5:8080'): ClientBinding {
  return { service: 'shop/web:http/TCP', client, endpoint, secondsLeft };
}

describe('bindings of client affinity', () => {
  test('only those with the most time left are kept, and all are counted', () => {
    const bindings = new LongestBindings(view, question({ limit: '10' }));
    // 7 and 1000 have no common divisor: every time once, in no order.
    for (let i = 0; i < 1000; i++) bindings.add(binding(`10.0.${i >> 8}.${i & 255}`, (i * 7) % 1000));
    assert.equal(bindings.found, 1000);
    assert.deepEqual(
      bindings.items.map(({ secondsLeft }) => secondsLeft),
      [999, 998, 997, 996, 995, 994, 993, 992, 991, 990],
    );
  });

  test('a reading that starts again counts nobody twice', () => {
    const bindings = new LongestBindings(view, question({}));
    bindings.add(binding('10.0.0.1', 10));
    bindings.clear();
    bindings.add(binding('10.0.0.1', 9));
    assert.equal(bindings.found, 1);
    assert.deepEqual(bindings.items, [
      { ...binding('10.0.0.1', 9), family: 'IPv4', pod: 'shop/web-0', frontend: null },
    ]);
  });

  test('a client is found by its address and by a range, an endpoint also by its port', () => {
    const both = [binding('10.0.0.1', 10), binding('10.0.1.1', 10, '10.244.2.9:8080')];
    const clients = (query: Readonly<Record<string, string>>) =>
      both.filter(question(query).isWanted).map(({ client }) => client);
    assert.deepEqual(clients({}), ['10.0.0.1', '10.0.1.1']);
    assert.deepEqual(clients({ client: '10.0.0.1' }), ['10.0.0.1']);
    assert.deepEqual(clients({ client: '10.0.1.0/24' }), ['10.0.1.1']);
    assert.deepEqual(clients({ endpoint: '10.244.2.9' }), ['10.0.1.1']);
    assert.deepEqual(clients({ endpoint: '10.244.2.9:80' }), []);
    assert.equal(question({ client: 'FD00::0:1' }).isWanted(binding('fd00::1', 1)), true);
  });

  for (const [query, message] of [
    [{ client: '10.0.0.1:80' }, 'client "10.0.0.1:80" is no address or range'],
    [{ endpoint: 'web' }, 'endpoint "web" is no address, address with port, or range'],
    [{ limit: '0' }, 'limit "0" is no number from 1 to 10000'],
    [{ limit: '-1' }, 'limit "-1" is no number from 1 to 10000'],
    [{ limit: '10001' }, 'limit "10001" is no number from 1 to 10000'],
  ] as const) {
    test(`${message}: the answer says so`, () => {
      assert.throws(() => question(query), new QuestionError(message));
    });
  }
});
