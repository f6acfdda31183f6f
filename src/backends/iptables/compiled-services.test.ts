import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { planOf } from '../../../test/cluster/plans.ts';
import { settingsOf } from '../../../test/iptables/harness.ts';
import { compareServices, compileService } from './compile.ts';
import { CompiledServices } from './compiled-services.ts';

function service(name: string, protocol: 'TCP' | 'UDP' = 'TCP', endpoints = 0) {
  const list = Array.from({ length: endpoints }, (_, i) => ({ ip: `10.244.0.${i + 1}` }));
  const plan = planOf({ name, clusterIP: '10.96.0.1', protocol }, list);
  return compileService(plan, settingsOf('IPv4'), { comments: true, countLocalhost: true });
}

test('a name that another begins with comes first, whatever follows in the other', () => {
  const sorted = [service('web-a'), service('web', 'UDP'), service('web')].sort(compareServices);
  assert.deepEqual(
    sorted.map(({ key }) => key),
    ['default/web/TCP', 'default/web/UDP', 'default/web-a/TCP'],
  );
});

test('step by step gives the same order and counts as all at once', () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'a-b', 'c', 'ab', 'b-1', 'b1'),
    protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
    endpoints: fc.integer({ min: 0, max: 3 }),
    isRemoved: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      const services = new CompiledServices();
      const expected = new Map<string, ReturnType<typeof service>>();
      for (const { name, protocol, endpoints, isRemoved } of steps) {
        const one = service(name, protocol, endpoints);
        if (isRemoved) {
          services.delete(one.key);
          expected.delete(one.key);
        } else {
          services.set(one);
          expected.set(one.key, one);
        }
      }
      const whole = new CompiledServices([...expected.values()]);
      assert.deepEqual([...services], [...whole]);
      assert.equal(services.filterRules, whole.filterRules);
      assert.equal(services.natRules, whole.natRules);
    }),
    { numRuns: 50 },
  );
});
