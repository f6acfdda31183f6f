import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import type { PersistenceTemplate } from '../../kernel/ipvs/persistence.ts';
import type { ClientBinding } from '../inspection.ts';
import { readBindings } from './bindings.ts';

const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080, affinitySeconds: 600 }, [
  { ip: '10.244.1.21' },
  { ip: '10.244.1.22', state: 'gone' },
]);

function template(address: string, port: number, real = '10.244.1.21'): PersistenceTemplate {
  const call = { protocol: 'TCP', client: '10.0.0.1', address, port } as const;
  return { call, address: real, port: 8080, secondsLeft: 7 };
}

test('templates belong to the service port with the address or the node port, while the endpoint takes connections', async () => {
  const found: ClientBinding[] = [];
  const templates = async function* () {
    yield template('10.96.0.1', 80);
    yield template('192.0.2.5', 30_080);
    yield template('10.96.0.2', 80);
    yield template('10.96.0.1', 80, '10.244.1.22');
  };
  await readBindings(templates(), [plan], { add: (binding) => found.push(binding), clear: () => {} });
  const bound = {
    service: plan.port.key,
    client: '10.0.0.1',
    endpoint: '10.244.1.21:8080',
    secondsLeft: 7,
  };
  assert.deepEqual(found, [
    { ...bound, frontend: '10.96.0.1:80' },
    { ...bound, frontend: '192.0.2.5:30080' },
  ]);
});
