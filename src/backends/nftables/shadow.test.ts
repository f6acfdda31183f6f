import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { EndpointParts, ServicePortParts } from '../../../test/cluster/objects.ts';
import { planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { describeElement } from '../../kernel/nft/describe-element.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { Bytes } from './bytes.ts';
import { chainsOf, type Value } from './compile.ts';
import { EarlierPlacements } from './earlier.ts';
import { encodeElement } from './element-codec.ts';
import { ElementDiff, type ElementMap, type ElementSink, elementsIn } from './element-diff.ts';
import { HandlerNumbers, handlerElements } from './handler-numbers.ts';
import { type SetName, setDefinition, valueKindOf } from './layout.ts';
import type { NftablesSettings } from './settings.ts';
import { Change, Shadow } from './shadow.ts';
import { StickyNumbers } from './sticky-numbers.ts';

const settings: NftablesSettings = {
  family: 'IPv4',
  masqueradeBit: 14,
  masqueradeAll: false,
  localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
  nodePortAddresses: nodePortAddresses('IPv4', []),
  nodeIP: '192.0.2.10',
  localhostNodePorts: true,
};

/** Holds elements as strictly as the kernel: nothing is added twice, and only what is there is deleted. */
class ModelKernel implements ElementSink {
  readonly elements: ElementMap = new Map();
  log: string[] = [];

  add(set: SetName, key: Bytes, value: Value): void {
    const elements = elementsIn(this.elements, set);
    assert.ok(!elements.has(key), `added twice: ${textOf(set, key, value)}`);
    elements.set(key, value);
    this.log.push(`+ ${textOf(set, key, value)}`);
  }

  delete(set: SetName, key: Bytes, value: Value): void {
    assert.equal(elementsIn(this.elements, set).get(key), value);
    elementsIn(this.elements, set).delete(key);
    this.log.push(`- ${textOf(set, key, value)}`);
  }

  emitAll(emit: Emit): void {
    for (const [set, elements] of this.elements) for (const [key, value] of elements) emit(set, key, value);
  }
}

/** Every element that a shadow stands for. */
function textOf(set: SetName, key: Bytes, value: Value): string {
  return describeElement(setDefinition('IPv4', set), encodeElement(set, key, value));
}

function allElements(shadow: Shadow, emit: Emit): void {
  for (const placement of shadow.placements()) shadow.elementsOf(placement, emit);
  for (const [set, key] of shadow.sharedElements()) emit(set, key, '');
}

type Emit = (set: SetName, key: Bytes, value: Value) => void;

/** The elements of `handlers` that the placements in a shadow need. */
function handlersOf(shadow: Shadow): Map<Bytes, Value> {
  const handlers = new Map<Bytes, Value>();
  for (const placement of shadow.placements()) {
    handlerElements(chainsOf(placement, settings), shadow.handlers, (_, key, value) =>
      handlers.set(key, value),
    );
  }
  return handlers;
}

/** A shadow and the kernel it stands for. */
class Pair {
  readonly shadow = new Shadow(settings);
  readonly kernel = new ModelKernel();

  /** What the kernel holds. */
  lines(): string[] {
    return this.#linesOf((emit) => this.kernel.emitAll(emit));
  }

  /** What the shadow stands for. */
  believed(): string[] {
    return this.#linesOf((emit) => allElements(this.shadow, emit));
  }

  /** Elements with their comments, and the name of a chain in place of its number. */
  #linesOf(each: (emit: Emit) => void): string[] {
    const lines: string[] = [];
    const handlers = handlersOf(this.shadow);
    each((set, key, value) => {
      const text = textOf(set, key, value);
      const comment = valueKindOf(set) === 'verdict' ? value.split('\n')[1] : '';
      if (valueKindOf(set) !== 'number') lines.push(`${text} ${comment}`);
      else lines.push(text.replace(/\S+$/, `${handlers.get(value.slice(0, 4))?.trim()} ${value.slice(4)}`));
    });
    return lines.sort();
  }

  set(plans: Map<string, ServicePlan>, ...keys: string[]): string[] {
    this.kernel.log = [];
    const change = this.shadow.update(keys.length > 0 ? keys : plans.keys(), plans);
    for (const _ of this.shadow.diff(change, new ElementDiff(this.kernel)));
    return this.kernel.log;
  }
}

const web: ServicePortParts = { clusterIP: '10.96.0.1' };
const [a, b, c, d] = ['10.244.2.1', '10.244.2.2', '10.244.2.3', '10.244.2.4'].map((ip) => ({ ip }));

function must<T>(value: T | undefined): T {
  assert.ok(value !== undefined);
  return value;
}

describe('operations of typical changes', () => {
  const change = (before: (EndpointParts | undefined)[], after: (EndpointParts | undefined)[]): string[] => {
    const pair = new Pair();
    pair.set(plansByKey(planOf(web, before.map(must))));
    return pair.set(plansByKey(planOf(web, after.map(must))));
  };

  test('an added endpoint changes one slot and the number of the chain', () => {
    assert.deepEqual(change([a, b], [a, b, c]), [
      '- frontends 10.96.0.1 . tcp . 80 : 0:1',
      '+ frontends 10.96.0.1 . tcp . 80 : 0:2',
      '+ endpoints 10.96.0.1 . tcp . 80 . 2 : 10.244.2.3 . 8080',
    ]);
  });

  test('a removed endpoint moves the last slot into the hole', () => {
    assert.deepEqual(change([a, b, c], [b, c]), [
      '- frontends 10.96.0.1 . tcp . 80 : 0:1',
      '+ frontends 10.96.0.1 . tcp . 80 : 0:2',
      '- endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.2.1 . 8080',
      '+ endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.2.3 . 8080',
      '- endpoints 10.96.0.1 . tcp . 80 . 2 : 10.244.2.3 . 8080',
    ]);
  });

  test('a replaced endpoint changes its slot alone', () => {
    assert.deepEqual(change([a, b, c], [a, c, d]), [
      '- endpoints 10.96.0.1 . tcp . 80 . 1 : 10.244.2.2 . 8080',
      '+ endpoints 10.96.0.1 . tcp . 80 . 1 : 10.244.2.4 . 8080',
    ]);
  });

  test('an unchanged service port needs no operation', () => {
    assert.deepEqual(change([a, b], [b, a]), []);
  });

  test('the removal of the last endpoint turns forwarding into rejecting', () => {
    assert.deepEqual(change([a], []), [
      '+ refused 10.96.0.1 . tcp . 80 : goto reject-packet',
      '- frontends 10.96.0.1 . tcp . 80 : 0:1',
      '- endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.2.1 . 8080',
    ]);
  });
});

test('services that share an address keep it until the last one leaves', () => {
  const pair = new Pair();
  const http = planOf({ ...web, portName: 'http' }, [{ ip: '10.244.1.1', local: true }]);
  const admin = planOf({ ...web, portName: 'admin', port: 81 }, [{ ip: '10.244.1.1', local: true }]);
  pair.set(plansByKey(http, admin));
  const shared = (): string[] => pair.lines().filter((line) => /^(cluster-addresses|hairpins)/.test(line));
  assert.deepEqual(shared(), [
    'cluster-addresses 10.96.0.1 ',
    'hairpins 10.244.1.1 . 10.244.1.1 . tcp . 8080 ',
  ]);
  pair.set(plansByKey(http), admin.port.key);
  assert.equal(shared().length, 2);
  pair.set(new Map(), http.port.key);
  assert.deepEqual(pair.lines(), []);
});

test('a contested address passes to the next claimant and back', () => {
  const pair = new Pair();
  const first = planOf({ ...web, name: 'first', externalIPs: ['192.0.2.99'] }, [must(a)]);
  const second = planOf({ clusterIP: '10.96.0.2', name: 'second', externalIPs: ['192.0.2.99'] }, [must(b)]);
  const owner = (): (string | undefined)[] =>
    pair
      .lines()
      .filter((line) => line.startsWith('frontends 192.0.2.99'))
      .map((line) => line.split(' ').at(-1));
  pair.set(plansByKey(second));
  assert.deepEqual(owner(), ['default/second']);
  pair.set(plansByKey(first, second), first.port.key, second.port.key);
  assert.deepEqual(owner(), ['default/first']);
  pair.set(plansByKey(second), first.port.key, second.port.key);
  assert.deepEqual(owner(), ['default/second']);
});

test('a cluster IP cannot be taken over by an external IP', () => {
  const pair = new Pair();
  const victim = planOf({ ...web, name: 'victim' }, [must(a)]);
  const thief = planOf({ clusterIP: '10.96.0.2', name: 'a-thief', externalIPs: ['10.96.0.1'] }, [must(b)]);
  pair.set(plansByKey(thief, victim));
  assert.ok(pair.lines().some((line) => /^frontends 10\.96\.0\.1 .*default\/victim$/.test(line)));
});

test('an element can be traced to its service port', () => {
  const pair = new Pair();
  pair.set(plansByKey(planOf(web, [must(a)])));
  const [key] = must(pair.kernel.elements.get('endpoints')).keys();
  const owners = pair.shadow.ownersOf('endpoints', new Set([must(key), 'nobody']));
  assert.deepEqual([...owners], [[key, 'default/web/TCP']]);
});

const endpointParts: fc.Arbitrary<EndpointParts> = fc.record({
  ip: fc.integer({ min: 1, max: 6 }).map((n) => `10.244.1.${n}`),
  local: fc.boolean(),
  state: fc.constantFrom('ready', 'ready', 'draining', 'gone'),
});

const anyPlan: fc.Arbitrary<ServicePlan> = fc
  .record({
    parts: fc.record({
      name: fc.constantFrom('s1', 's2', 's3', 's4'),
      clusterIP: fc.constantFrom('10.96.0.1', '10.96.0.2', '10.96.0.3'),
      port: fc.constantFrom(80, 81),
      nodePort: fc.constantFrom(0, 30080, 30081),
      affinitySeconds: fc.constantFrom(0, 0, 60, 10800),
      externalIPs: fc.subarray(['192.0.2.98', '192.0.2.99', '10.96.0.1']),
      loadBalancerVIPs: fc.subarray(['198.18.0.1', '192.0.2.99']),
      sourceRanges: fc.subarray(['10.0.0.0/8', '10.1.0.0/16', '192.0.2.0/24']),
      externalPolicyLocal: fc.boolean(),
      internalPolicyLocal: fc.boolean(),
    }),
    endpoints: fc.uniqueArray(endpointParts, { maxLength: 5, selector: (e) => e.ip }),
  })
  .map(({ parts, endpoints }) => planOf(parts, endpoints));

const anySteps = fc.array(
  fc.array(fc.oneof(anyPlan, fc.constantFrom('s1', 's2', 's3', 's4')), { maxLength: 3 }),
  {
    minLength: 1,
    maxLength: 12,
  },
);

/** Slots and numbers depend on history; the rest of an element does not. */
function withoutHistory(lines: readonly string[]): string[] {
  return lines
    .map((line) =>
      line.replace(
        /^(\S*endpoints .*) \. (\d+) :/,
        (_, key, slot) => `${key} . ${Number(slot) >= 1e5 ? 'L' : 'C'} :`,
      ),
    )
    .map((line) => line.replace(/\b[0-9a-f]+:[0-9a-f]+\b/g, 'number'))
    .sort();
}

test('applying differences one after another leads where compiling from scratch does', () => {
  fc.assert(
    fc.property(anySteps, (steps) => {
      const pair = new Pair();
      const plans = new Map<string, ServicePlan>();
      let owned = new Map<string, ServicePlan>();
      for (const step of steps) {
        const keys = step.map((item) => (typeof item === 'string' ? `default/${item}/TCP` : item.port.key));
        for (const [i, item] of step.entries()) {
          if (typeof item === 'string') plans.delete(must(keys[i]));
          else plans.set(item.port.key, item);
        }
        // As the planner does it: who loses or gets back a frontend by a change has a new plan, too.
        const before = owned;
        owned = plansByKey(...plans.values());
        for (const [key, plan] of owned) if (before.get(key) !== plan) keys.push(key);
        pair.set(owned, ...(keys.length > 0 ? new Set(keys) : ['default/none/TCP']));
        assert.deepEqual(pair.lines(), pair.believed());
      }
      const scratch = new Pair();
      scratch.set(owned);
      assert.deepEqual(withoutHistory(pair.lines()), withoutHistory(scratch.lines()));
    }),
    { numRuns: 300 },
  );
});

test('a restart finds everything as it is and changes nothing', () => {
  fc.assert(
    fc.property(
      fc.array(anyPlan, { maxLength: 8 }),
      fc.array(anyPlan, { maxLength: 8 }),
      (earlier, later) => {
        const pair = new Pair();
        pair.set(plansByKey(...earlier));
        const plans = plansByKey(...earlier, ...later);
        pair.set(plans);
        const { elements } = pair.kernel;
        const numbers = new StickyNumbers();
        const restarted = new Shadow(settings, numbers, new HandlerNumbers(handlersOf(pair.shadow)));
        const placements = new EarlierPlacements(elements, numbers);
        restarted.update(plans.keys(), plans, new Change(), (plan, frontends) =>
          placements.of(plan, frontends),
        );
        pair.kernel.log = [];
        const diff = new ElementDiff(
          pair.kernel,
          new Map([...elements].map(([set, map]) => [set, new Map(map)])),
        );
        allElements(restarted, (set, key, value) => diff.wants(set, key, value));
        diff.finish();
        assert.deepEqual(pair.kernel.log, []);
      },
    ),
    { numRuns: 300 },
  );
});
