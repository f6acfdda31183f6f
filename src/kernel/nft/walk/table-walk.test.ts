import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { jhash, scaled } from '../../../lib/jhash.ts';
import type { Expr, Verdict } from '../expr.ts';
import type { BaseChain, Chain, Element, Hook, Rule } from '../objects.ts';
import { NotUnderstoodError } from './chain-walk.ts';
import type { FirstPacket } from './packet-state.ts';
import { walkTable } from './table-walk.ts';

const table = { family: 'ip', name: 't' } as const;
const outside = Uint8Array.of(203, 0, 113, 7);
const service = Uint8Array.of(10, 96, 0, 1);
const own = Uint8Array.of(192, 0, 2, 5);
const received: FirstPacket = { protocol: 6, source: outside, destination: service, port: 80, input: 'eth0' };
const made: FirstPacket = { ...received, source: own, input: undefined };

type Rules = Readonly<Record<string, readonly (readonly Expr[])[]>>;

const go = (kind: 'jump' | 'goto', chain: string): Expr => ({ kind: 'verdict', verdict: { kind, chain } });
const end = (kind: 'accept' | 'drop' | 'return'): Expr => ({ kind: 'verdict', verdict: { kind } });
const reject: Expr = { kind: 'reject', type: 'icmp-unreach', code: 3 };
const setMark = (value: number): Expr[] => [
  { kind: 'immediate', dreg: 0, value: Uint8Array.of(value, 0, 0, 0) },
  { kind: 'meta-set', key: 'mark', sreg: 0 },
];

/** Rules of regular chains by name, and of base chains by hook: `input`, or `output -100` and `nat output`. */
async function walk(
  packet: FirstPacket,
  rules: Rules,
  { elements = {}, policy }: { elements?: Record<string, Element>; policy?: BaseChain['policy'] } = {},
) {
  const chains = Object.keys(rules).map((name): Chain => {
    const match = /^(nat )?(prerouting|input|forward|output|postrouting)(?: (-?[0-9]+))?$/.exec(name);
    if (!match) return { table, name };
    const type = match[1] ? 'nat' : 'filter';
    const base = { type, hook: match[2] as Hook, priority: Number(match[3] ?? 0) } as const;
    return { table, name, base: policy ? { ...base, policy } : base };
  });
  const endings = await walkTable(packet, {
    chains,
    rulesOf: (name) => (rules[name] ?? []).map((exprs): Rule => ({ chain: { table, name }, exprs })),
    keyLengthOf: () => 4,
    find: async (set, key) => elements[`${set} ${key.join('.')}`],
    isLocal: (address) => Buffer.compare(address, own) === 0,
  });
  return endings.map(({ state, action }) => ({
    action,
    to: state.isRewritten ? `${state.destination.join('.')}:${state.port}` : '',
    mark: state.mark,
    masqueraded: state.isMasqueraded,
    probability: state.probability,
    steps: state.steps(),
  }));
}

const actions = async (...args: Parameters<typeof walk>) => (await walk(...args)).map(({ action }) => action);

suite('verdicts', () => {
  test('a packet that no rule decides about gets the policy of the chain', async () => {
    assert.deepEqual(await actions(received, { forward: [] }), ['accept']);
    assert.deepEqual(await actions(received, { forward: [] }, { policy: 'drop' }), ['drop']);
    assert.deepEqual(await actions(received, { forward: [[end('accept')]] }, { policy: 'drop' }), ['accept']);
  });

  test('drop and reject end the walk', async () => {
    assert.deepEqual(await actions(received, { forward: [[end('drop')], [reject]] }), ['drop']);
    assert.deepEqual(await actions(received, { forward: [[reject]] }), ['reject']);
  });

  test('a jump returns to its chain, a goto does not', async () => {
    const helper = [[end('return')], [reject]];
    assert.deepEqual(await actions(received, { forward: [[go('jump', 'h')], [reject]], h: [] }), ['reject']);
    assert.deepEqual(await actions(received, { forward: [[go('jump', 'h')], [end('drop')]], h: helper }), [
      'drop',
    ]);
    assert.deepEqual(await actions(received, { forward: [[go('goto', 'h')], [end('drop')]], h: helper }), [
      'accept',
    ]);
    const deep = { forward: [[go('jump', 'a')], [reject]], a: [[go('goto', 'b')], [end('drop')]], b: [] };
    assert.deepEqual(await actions(received, deep), ['reject']);
  });

  test('a packet accepted in one base chain passes the next one', async () => {
    const rules = { 'forward 5': [[reject]], 'forward -5': [[end('accept')]] };
    assert.deepEqual(await actions(received, rules), ['reject']);
  });

  test('a jump cycle terminates', async () => {
    assert.deepEqual(await actions(received, { forward: [[go('jump', 'a')]], a: [[go('jump', 'a')]] }), [
      'drop',
    ]);
  });
});

suite('hooks', () => {
  const dnat: Expr[] = [
    { kind: 'immediate', dreg: 0, value: own },
    { kind: 'immediate', dreg: 1, value: Uint8Array.of(31, 144) },
    { kind: 'nat', type: 'dnat', family: 'ip', addr: 0, port: 1 },
  ];
  const masq: Expr[] = [{ kind: 'masq' }];
  const marking: Rules = {
    prerouting: [setMark(1)],
    output: [setMark(2)],
    input: [setMark(3)],
    forward: [setMark(4)],
    'nat postrouting': [masq],
  };

  test('a packet to another host passes forward and postrouting', async () => {
    const [ending] = await walk(received, marking);
    assert.deepEqual([ending?.mark, ending?.masqueraded], [4, true]);
  });

  test('a packet to the node passes input and not postrouting', async () => {
    const [ending] = await walk({ ...received, destination: own }, marking);
    assert.deepEqual([ending?.mark, ending?.masqueraded], [3, false]);
  });

  test('a packet of the node passes output and postrouting; one to the node itself comes in again', async () => {
    const [leaving] = await walk(made, marking);
    assert.deepEqual([leaving?.mark, leaving?.masqueraded], [2, true]);
    const [coming] = await walk({ ...made, destination: own }, marking);
    assert.deepEqual([coming?.mark, coming?.masqueraded], [3, true]);
  });

  test('routing uses the rewritten destination', async () => {
    const [ending] = await walk(received, { ...marking, 'nat prerouting -100': [dnat] });
    assert.deepEqual([ending?.mark, ending?.to], [3, '192.0.2.5:8080']);
  });

  test('a packet that comes in again by loopback passes no nat chain again', async () => {
    const [ending] = await walk({ ...made, destination: own }, { 'nat prerouting': [[reject]] });
    assert.equal(ending?.action, 'accept');
  });
});

suite('draws', () => {
  const pick: Expr[] = [
    { kind: 'numgen', type: 'random', modulus: 4, dreg: 0 },
    { kind: 'lookup', set: 'm', sreg: 0, dreg: 'verdict' },
  ];
  const verdictAt = (slot: number, verdict: Verdict): [string, Element] => [
    `m ${slot}.0.0.0`,
    { key: Uint8Array.of(slot, 0, 0, 0), verdict },
  ];

  test('every random number is followed with its probability; one without an element continues with the next rule', async () => {
    const elements = Object.fromEntries([verdictAt(0, { kind: 'drop' }), verdictAt(2, { kind: 'drop' })]);
    const endings = await walk(received, { forward: [pick, [reject]] }, { elements });
    assert.deepEqual(endings.map(({ action, probability }) => `${action} ${probability}`).sort(), [
      'drop 0.25',
      'drop 0.25',
      'reject 0.25',
      'reject 0.25',
    ]);
    const missing = endings.flatMap(({ steps }) => steps.filter(({ kind }) => kind === 'missing'));
    assert.deepEqual(
      missing.map((step) => step.kind === 'missing' && step.key[0]),
      [1, 3],
    );
  });

  const hash: Expr = { kind: 'hash', type: 'jenkins', sreg: 1, length: 4, seed: 1, modulus: 4, dreg: 0 };
  const vmap: Expr = { kind: 'lookup', set: 'm', sreg: 0, dreg: 'verdict' };

  test('a hash of the source address leads to one number', async () => {
    const load: Expr = { kind: 'payload', base: 'network', offset: 12, length: 4, dreg: 1 };
    const slot = scaled(jhash(outside, 1), 4);
    const elements = Object.fromEntries([verdictAt(slot, { kind: 'drop' })]);
    const endings = await walk(received, { forward: [[load, hash, vmap]] }, { elements });
    assert.deepEqual(
      endings.map(({ action, probability }) => [action, probability]),
      [['drop', 1]],
    );
  });

  test('a hash of the source port, which is not known, may be any number', async () => {
    const load: Expr = { kind: 'payload', base: 'transport', offset: 0, length: 2, dreg: 1 };
    const elements = Object.fromEntries([verdictAt(3, { kind: 'drop' })]);
    const endings = await walk(received, { forward: [[load, hash, vmap]] }, { elements });
    assert.deepEqual(endings.map(({ action, probability }) => `${action} ${probability}`).sort(), [
      'accept 0.25',
      'accept 0.25',
      'accept 0.25',
      'drop 0.25',
    ]);
  });

  test('the states of different random numbers are independent', async () => {
    const elements = Object.fromEntries([verdictAt(1, { kind: 'jump', chain: 'mark' })]);
    const endings = await walk(received, { forward: [pick], mark: [setMark(7)] }, { elements });
    assert.deepEqual(endings.map(({ mark }) => mark).sort(), [0, 0, 0, 7]);
  });
});

test('a first packet goes from the client to the server, and resets nothing', async () => {
  const tests: Expr[] = [
    { kind: 'ct', key: 'direction', dreg: 0 },
    { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(0) },
    { kind: 'payload', base: 'transport', offset: 13, length: 1, dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: Uint8Array.of(4), xor: Uint8Array.of(0) },
    { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(0) },
  ];
  assert.deepEqual(await actions(received, { forward: [[...tests, reject]] }), ['reject']);
  await assert.rejects(
    walk({ ...received, protocol: 17 }, { forward: [[...tests, reject]] }),
    NotUnderstoodError,
  );
});

test('a rule with an unknown expression fails the walk', async () => {
  const unknown: Expr = { kind: 'unknown', name: 'quota', data: new Uint8Array() };
  await assert.rejects(
    walk(received, { forward: [[unknown, reject]] }),
    /^NotUnderstoodError: chain forward has a rule that is not understood: \[ unknown data 0x name quota \] \[ reject/,
  );
  const loads: Expr[] = [
    { kind: 'meta', key: 'oifname', dreg: 0 },
    { kind: 'ct', key: 'mark', dreg: 0 },
    { kind: 'fib', flags: ['daddr', 'iif'], result: 'type', dreg: 0 },
    { kind: 'payload', base: 'link', offset: 0, length: 6, dreg: 0 },
    { kind: 'payload', base: 'network', offset: 8, length: 1, dreg: 0 },
    { kind: 'payload', base: 'transport', offset: 0, length: 2, dreg: 0 },
    { kind: 'payload', base: 'transport', offset: 2, length: 4, dreg: 0 },
    { kind: 'numgen', type: 'random', modulus: 0xffff_ffff, dreg: 0 },
  ];
  for (const load of loads) {
    await assert.rejects(walk(received, { forward: [[load, reject]] }), NotUnderstoodError);
  }
  assert.deepEqual(await actions(received, { forward: [[end('drop')], [unknown]] }), ['drop']);
});
