import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Expr, Verdict } from '../expr.ts';
import type { Chain, Element, ListedRule } from '../objects.ts';
import { knownWord } from './known-bits.ts';
import type { PacketView } from './partial-packet.ts';
import { type KnownChains, possibleVerdicts, type RulesetFacts } from './possible-verdicts.ts';

const table = { family: 'inet', name: 'filter' } as const;
const forward: Chain = {
  table,
  name: 'forward',
  base: { type: 'filter', hook: 'forward', priority: 0, policy: 'drop' },
};
const view: PacketView = {
  protocol: 6,
  source: Uint8Array.of(10, 0, 0, 1),
  destination: Uint8Array.of(10, 244, 1, 21),
  port: 8080,
  input: 'eth0',
  output: 'veth1',
  isRewritten: true,
};

const verdict = (kind: 'accept' | 'drop' | 'return'): Expr => ({ kind: 'verdict', verdict: { kind } });
const to = (kind: 'jump' | 'goto', chain: string): Expr => ({ kind: 'verdict', verdict: { kind, chain } });
const port = (value: number): Expr[] => [
  { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(value >> 8, value & 255) },
];
/** Matches the source port, which nobody knows. */
const sourcePort: Expr[] = [
  { kind: 'payload', base: 'transport', offset: 0, length: 2, dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(1, 1) },
];
const unknown = (name: string): Expr => ({ kind: 'unknown', name, data: new Uint8Array() });

type Rules = Readonly<Record<string, readonly (readonly Expr[])[]>>;

/** The possible verdicts in short: `drop 2` is by the second rule, `drop policy` by the policy. */
async function verdicts(
  rules: Rules,
  elements: Record<string, Element> = {},
  seen = view,
  known?: KnownChains,
) {
  const numbered = Object.entries(rules).map(([name, bodies]): [string, ListedRule[]] => [
    name,
    bodies.map((exprs, i) => ({ chain: { table, name }, exprs, handle: BigInt(i + 1) })),
  ]);
  const listed = new Map(numbered);
  const facts: RulesetFacts = {
    rulesOf: async ({ name }) => listed.get(name) ?? [],
    keyLengthOf: async () => 2,
    find: async (_set, key) => elements[Buffer.from(key).readUInt16BE()],
    isLocal: () => false,
    indexOf: () => 7,
    leadsTo: async () => true,
  };
  const state = { view: seen, isTracked: true, mark: knownWord(0) };
  const { verdicts: found, unclear } = await possibleVerdicts(forward, state, facts, known);
  const texts = found.map(({ action, chains, rule }) =>
    [action, ...chains.slice(1), rule?.handle ?? 'policy'].join(' '),
  );
  return { texts, unclear };
}

suite('possible verdicts of a base chain', () => {
  test('the policy decides when no rule does', async () => {
    assert.deepEqual(await verdicts({ forward: [[...port(80), verdict('accept')]] }), {
      texts: ['drop policy'],
      unclear: 0,
    });
  });

  test('the first rule that matches decides, and later rules do not count', async () => {
    const rules = { forward: [[...port(8080), verdict('accept')], [verdict('drop')]] };
    assert.deepEqual((await verdicts(rules)).texts, ['accept 1']);
  });

  test('a rule that is not understood may match or not, and both ways are followed', async () => {
    const rules = { forward: [[...sourcePort, verdict('drop')], [verdict('accept')]] };
    assert.deepEqual(await verdicts(rules), { texts: ['drop 1', 'accept 2'], unclear: 1 });
    const limited = { forward: [[unknown('limit'), verdict('accept')]] };
    assert.deepEqual(await verdicts(limited), { texts: ['accept 1', 'drop policy'], unclear: 1 });
  });

  test('a test that certainly fails counts more than one that is not understood', async () => {
    const rules = { forward: [[unknown('limit'), ...port(80), verdict('accept')]] };
    assert.deepEqual(await verdicts(rules), { texts: ['drop policy'], unclear: 0 });
  });

  test('an expression that is not understood may have changed any register', async () => {
    const load = port(80).slice(0, 1);
    const rules = { forward: [[...load, unknown('meta'), ...port(80).slice(1), verdict('accept')]] };
    assert.deepEqual((await verdicts(rules)).texts, ['accept 1', 'drop policy']);
  });

  test('a packet returns from a jump, and leaves the calling chain after a goto', async () => {
    const helper = [[...port(80), verdict('drop')]];
    assert.deepEqual(
      (await verdicts({ forward: [[to('jump', 'helper')], [verdict('accept')]], helper })).texts,
      ['accept 2'],
    );
    assert.deepEqual(
      (await verdicts({ forward: [[to('goto', 'helper')], [verdict('accept')]], helper })).texts,
      ['drop policy'],
    );
  });

  test('a goto that may be taken may lead to the policy', async () => {
    const rules = {
      forward: [[...sourcePort, to('goto', 'helper')], [verdict('accept')]],
      helper: [[verdict('return')]],
    };
    assert.deepEqual((await verdicts(rules)).texts, ['accept 2', 'drop policy']);
  });

  test('a verdict map decides by the element of the key', async () => {
    const drop: Verdict = { kind: 'drop' };
    const rules = {
      forward: [
        [...port(8080).slice(0, 1), { kind: 'lookup', set: 'ports', sreg: 0, dreg: 'verdict' } as const],
        [verdict('accept')],
      ],
    };
    const element = { key: Uint8Array.of(31, 144), verdict: drop };
    assert.deepEqual((await verdicts(rules, { 8080: element })).texts, ['drop 1']);
    assert.deepEqual((await verdicts(rules)).texts, ['accept 2']);
    const unsure = await verdicts(rules, {}, { ...view, port: undefined });
    assert.deepEqual(unsure.texts, ['unknown 1', 'accept 2']);
  });

  test('a mark that may have been set is not known later', async () => {
    const set: Expr[] = [
      { kind: 'immediate', dreg: 0, value: knownWord(1).value },
      { kind: 'meta-set', key: 'mark', sreg: 0 },
    ];
    const marked: Expr[] = [
      { kind: 'meta', key: 'mark', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: knownWord(1).value },
    ];
    const accepts = [...marked, verdict('accept')];
    assert.deepEqual((await verdicts({ forward: [set, accepts] })).texts, ['accept 2']);
    assert.deepEqual((await verdicts({ forward: [[...sourcePort, ...set], accepts] })).texts, [
      'accept 2',
      'drop policy',
    ]);
  });

  test('of chains that the caller knows, only what they accept counts, or nothing', async () => {
    const rules = {
      forward: [[to('jump', 'ours')], [to('jump', 'translation')]],
      ours: [
        [unknown('limit'), verdict('drop')],
        [unknown('limit'), verdict('accept')],
      ],
      translation: [[verdict('accept')]],
    };
    const known = {
      isHarmless: (name: string) => name === 'ours',
      isSkipped: (name: string) => name === 'translation',
    };
    const { texts, unclear } = await verdicts(rules, {}, view, known);
    assert.deepEqual(texts, ['accept ours 2', 'drop policy']);
    assert.equal(unclear, 1);
  });

  test('a jump cycle ends', async () => {
    const rules = { forward: [[to('jump', 'forward')]] };
    assert.deepEqual((await verdicts(rules)).texts.length, 1);
  });
});
