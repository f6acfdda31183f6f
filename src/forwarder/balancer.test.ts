import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../test/fake-clock.ts';
import { Balancer, type Call, maxRememberedClients } from './balancer.ts';

const three = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];

function make() {
  const clock = new FakeClock();
  return { clock, balancer: new Balancer({ clock, random: Math.random }) };
}

function from(ip: string, reset = false, port = 40_000): Call {
  return { client: () => ({ ip, port }), reset, load: () => 0 };
}

function draw(balancer: Balancer, count: number): (string | undefined)[] {
  return Array.from({ length: count }, () => balancer.next(from('10.9.9.9')));
}

/** Three clients with affinity, each bound to another endpoint. */
function sticky(seconds = 10_800) {
  const made = make();
  made.balancer.setEndpoints(three);
  made.balancer.configure(seconds, 'round-robin');
  const ask = (client: string, reset = false) => made.balancer.next(from(client, reset));
  const bound = { A: ask('10.1.0.1'), B: ask('10.1.0.2'), C: ask('10.1.0.3') };
  return { ...made, ask, bound };
}

describe('taking turns', () => {
  test('without endpoints there is no next endpoint', () => {
    const { balancer } = make();
    assert.deepEqual(draw(balancer, 1), [undefined]);
    balancer.configure(60, 'least-connections');
    assert.deepEqual(draw(balancer, 1), [undefined]);
  });

  test('round robin repeats one random order of the endpoints', () => {
    const { balancer } = make();
    balancer.setEndpoints(three);
    const drawn = draw(balancer, 6);
    assert.deepEqual(drawn.slice(0, 3).toSorted(), three);
    assert.deepEqual(drawn.slice(3), drawn.slice(0, 3));
  });

  test('setting the same endpoints in another order does not change the sequence', () => {
    const { balancer } = make();
    balancer.setEndpoints(three);
    const drawn = draw(balancer, 4);
    balancer.setEndpoints(three.toReversed());
    assert.deepEqual(draw(balancer, 2), drawn.slice(1, 3));
  });

  test('after an endpoint is removed a new sequence begins without it', () => {
    const { balancer } = make();
    balancer.setEndpoints(three);
    draw(balancer, 2);
    balancer.setEndpoints(three.slice(0, 2));
    const drawn = draw(balancer, 4);
    assert.deepEqual(drawn.slice(0, 2).toSorted(), three.slice(0, 2));
    assert.deepEqual(drawn.slice(2), drawn.slice(0, 2));
  });

  test('every endpoint gets the same number of connections, for random lists', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.ipV4(), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 5 }),
        (ips, rounds) => {
          const { balancer } = make();
          balancer.setEndpoints(ips);
          const counts = Map.groupBy(draw(balancer, ips.length * rounds), (ip) => ip);
          assert.ok(ips.every((ip) => counts.get(ip)?.length === rounds));
        },
      ),
    );
  });

  test('least-connections chooses the endpoint with the fewest, in turn among equals', () => {
    const { balancer } = make();
    balancer.setEndpoints(three);
    balancer.configure(0, 'least-connections');
    const loads = new Map([
      ['10.0.0.1:80', 2],
      ['10.0.0.2:80', 1],
      ['10.0.0.3:80', 2],
    ]);
    const next = () => balancer.next({ ...from('10.9.9.9'), load: (endpoint) => loads.get(endpoint) ?? 0 });
    assert.deepEqual([next(), next()], ['10.0.0.2:80', '10.0.0.2:80']);
    loads.set('10.0.0.2:80', 2);
    assert.deepEqual([next(), next(), next()].toSorted(), three);
  });
});

test('preview returns the next endpoint and changes nothing', () => {
  const { balancer } = make();
  assert.deepEqual(balancer.preview('10.9.9.9'), { turns: [], bound: undefined });
  balancer.setEndpoints(three);
  balancer.configure(0, 'least-connections');
  for (let i = 0; i < 5; i++) {
    const { turns } = balancer.preview('10.9.9.9');
    assert.deepEqual(turns.toSorted(), three);
    assert.equal(draw(balancer, 1)[0], turns[0]);
  }
  const { endpoints, ...rest } = balancer.settings();
  assert.deepEqual(endpoints.toSorted(), three);
  assert.deepEqual(rest, { affinitySeconds: 0, choice: 'least-connections' });
});

describe('a hash', () => {
  /** What another node would choose, which got the endpoints in another order. */
  const elsewhere = (choice: 'hash' | 'hash-client', call: Call) => {
    const { balancer } = make();
    balancer.configure(0, choice);
    balancer.setEndpoints(three.toReversed());
    return balancer.next(call);
  };

  test('chooses the same endpoint for a client on every node', () => {
    const { balancer } = make();
    balancer.setEndpoints(three);
    for (const choice of ['hash', 'hash-client'] as const) {
      balancer.configure(0, choice);
      for (let port = 40_000; port < 40_100; port++) {
        const call = from('10.9.9.9', false, port);
        assert.equal(balancer.next(call), elsewhere(choice, call));
      }
    }
  });

  test('of address and port spreads the connections of a client, one of the address alone does not', () => {
    const endpointsOf = (choice: 'hash' | 'hash-client') =>
      new Set(Array.from({ length: 100 }, (_, i) => elsewhere(choice, from('10.9.9.9', false, 40_000 + i))));
    assert.equal(endpointsOf('hash').size, 3);
    assert.equal(endpointsOf('hash-client').size, 1);
  });
});

test('endpoints to avoid are skipped while there are others, with every choice', () => {
  for (const choice of ['round-robin', 'least-connections', 'random', 'hash', 'hash-client'] as const) {
    const { balancer } = make();
    balancer.setEndpoints(three);
    balancer.configure(0, choice);
    const call = { ...from('10.9.9.9', true), avoid: new Set(three.slice(0, 2)) };
    for (let i = 0; i < 5; i++) assert.equal(balancer.next(call), three[2], choice);
    assert.ok(three.includes(balancer.next({ ...call, avoid: new Set(three) }) ?? ''));
  }
});

describe('client affinity', () => {
  test('with affinity clients are spread over endpoints and each keeps its endpoint', () => {
    const { ask, bound } = sticky();
    assert.deepEqual(Object.values(bound).toSorted(), three);
    assert.deepEqual([ask('10.1.0.2'), ask('10.1.0.1'), ask('10.1.0.3')], [bound.B, bound.A, bound.C]);
  });

  test('a client whose endpoint is removed gets another one and keeps it; other clients keep theirs', () => {
    const { balancer, ask, bound } = sticky();
    balancer.setEndpoints(three.filter((endpoint) => endpoint !== bound.A));
    const next = ask('10.1.0.1');
    assert.ok(next === bound.B || next === bound.C);
    assert.equal(ask('10.1.0.1'), next);
    assert.deepEqual([ask('10.1.0.2'), ask('10.1.0.3')], [bound.B, bound.C]);
  });

  test('after a reset a client gets the next endpoint in turn', () => {
    const { ask, bound } = sticky();
    const tries = [ask('10.1.0.1', true), ask('10.1.0.1', true), ask('10.1.0.1', true)];
    assert.deepEqual(tries, [bound.A, bound.B, bound.C]);
    assert.equal(ask('10.1.0.1'), tries[2]);
  });

  test('affinity of 1 s is renewed by use after 0.9 s and expires after 1.0 s', async () => {
    const { clock, balancer, ask, bound } = sticky(1);
    await clock.advance(900);
    assert.equal(ask('10.1.0.1'), bound.A);
    await clock.advance(900);
    assert.equal(ask('10.1.0.1'), bound.A);
    await clock.advance(1_000);
    balancer.prune();
    assert.equal(balancer.rememberedClients, 0);
    ask('10.1.0.9');
    assert.notEqual(ask('10.1.0.1'), bound.A);
  });

  test('preview returns the endpoint that a client is bound to until affinity expires', async () => {
    const { clock, balancer, bound } = sticky(1);
    assert.deepEqual(balancer.preview('10.1.0.1').bound, { endpoint: bound.A, secondsLeft: 1 });
    assert.equal(balancer.preview('10.1.0.9').bound, undefined);
    await clock.advance(250);
    assert.equal(balancer.preview('10.1.0.1').bound?.secondsLeft, 0.75);
    await clock.advance(750);
    assert.equal(balancer.preview('10.1.0.1').bound, undefined);
  });

  test('all bindings are found page by page, the last callers first, without those that have expired', async () => {
    const { clock, balancer, ask } = sticky(1);
    await clock.advance(1_000);
    const callers: string[] = [];
    for (let i = 0; i < 5000; i++) {
      if (i % 100 === 0) await clock.advance(1);
      callers.push(`10.2.${i >> 8}.${i & 255}`);
      ask(callers[i] ?? '');
    }
    const found: string[] = [];
    let pages = 0;
    for (let start: number | undefined = Number.POSITIVE_INFINITY; start !== undefined; pages++) {
      const page = balancer.bindings(start);
      found.push(...page.bindings.map(({ client }) => client));
      start = page.next;
    }
    assert.deepEqual(found, callers.toReversed());
    assert.equal(pages, 3);
    assert.deepEqual(balancer.bindings().bindings[0], {
      client: callers.at(-1),
      endpoint: balancer.preview(callers.at(-1) ?? '').bound?.endpoint,
      secondsLeft: 1,
    });
  });

  test('a changed affinity timeout applies to clients already bound', async () => {
    const { clock, balancer, ask, bound } = sticky(600);
    await clock.advance(599_000);
    assert.equal(ask('10.1.0.2'), bound.B);
    balancer.configure(700, 'round-robin');
    await clock.advance(699_000);
    assert.equal(ask('10.1.0.2'), bound.B);
  });

  test('above the limit the client that was seen longest ago is forgotten', () => {
    const { balancer, ask, bound } = sticky();
    const boundOf = (client: string) => balancer.preview(client).bound?.endpoint;
    for (let i = 3; i < maxRememberedClients; i++) ask(`2001:db8::${i.toString(16)}`);
    assert.equal(ask('10.1.0.1'), bound.A);
    ask('2001:db8::1:0');
    assert.equal(balancer.rememberedClients, maxRememberedClients);
    assert.deepEqual([boundOf('10.1.0.1'), boundOf('10.1.0.2')], [bound.A, undefined]);
    assert.equal(boundOf('10.1.0.3'), bound.C);
  });

  test('a client bound to an avoided endpoint gets another one, other clients keep theirs', () => {
    const { balancer, bound } = sticky();
    const avoid = new Set([bound.A ?? '']);
    const but = (client: string) => balancer.next({ ...from(client), avoid });
    const next = but('10.1.0.1');
    assert.notEqual(next, bound.A);
    assert.deepEqual([but('10.1.0.1'), but('10.1.0.2'), but('10.1.0.3')], [next, bound.B, bound.C]);
  });

  test('removing all endpoints forgets all clients', () => {
    const { balancer, ask } = sticky();
    balancer.setEndpoints([]);
    assert.equal(ask('10.1.0.1'), undefined);
    balancer.setEndpoints(three);
    assert.equal(balancer.rememberedClients, 0);
    assert.deepEqual([ask('10.1.0.3'), ask('10.1.0.2'), ask('10.1.0.1')].toSorted(), three);
  });

  test('switching affinity off forgets all clients', () => {
    const { balancer } = sticky();
    balancer.configure(0, 'round-robin');
    assert.equal(balancer.rememberedClients, 0);
  });

  test('a choice that clients do not share forgets the one that they shared, and the other way round', () => {
    const { balancer } = make();
    balancer.setEndpoints(three);
    for (const choice of ['random', 'hash', 'random', 'hash-client'] as const) {
      balancer.configure(60, choice);
      assert.equal(balancer.rememberedClients, 0, choice);
      balancer.next(from('127.0.0.1'));
      assert.equal(balancer.rememberedClients, 1);
    }
    balancer.configure(60, 'hash');
    assert.equal(balancer.rememberedClients, 1, 'between hashes, clients keep their endpoints');
  });

  test('with random choice and affinity all clients share one endpoint until the timeout has passed', async () => {
    const clock = new FakeClock();
    let next = 0;
    const balancer = new Balancer({ clock, random: () => (next++ % 2) / 2 });
    balancer.setEndpoints(three.slice(0, 2));
    balancer.configure(60, 'random');
    const ask = (client: string) => balancer.next(from(client));
    const first = ask('127.0.0.1');
    await clock.advance(60_000);
    assert.equal(ask('127.0.0.2'), first);
    balancer.configure(61, 'random');
    assert.equal(balancer.rememberedClients, 0);
  });
});
