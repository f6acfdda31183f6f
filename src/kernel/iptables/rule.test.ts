import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalRule } from './canonical-rule.ts';
import { parseRule } from './rule.ts';
import { SavedTable } from './saved-table.ts';

test('reads matches, negations and the target of a rule', () => {
  const line =
    '-A KUBE-SVC-X ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m comment --comment "a \\"b\\" -j c" -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:80';
  const plain = { isNegated: false };
  assert.deepEqual(parseRule(line), {
    chain: 'KUBE-SVC-X',
    matches: [
      {
        module: '',
        options: [
          { name: '-s', values: ['10.244.0.0/16'], isNegated: true },
          { name: '-d', values: ['10.96.0.1/32'], ...plain },
          { name: '-p', values: ['tcp'], ...plain },
        ],
      },
      { module: 'comment', options: [{ name: '--comment', values: ['a "b" -j c'], ...plain }] },
      { module: 'tcp', options: [{ name: '--dport', values: ['80'], ...plain }] },
    ],
    target: {
      name: 'DNAT',
      isGoto: false,
      options: [{ name: '--to-destination', values: ['10.0.0.1:80'], ...plain }],
    },
  });
});

test('a comment is one word, also when it looks like an option', () => {
  const rule = parseRule('-A KUBE-X -m comment --comment -j -j ACCEPT');
  assert.deepEqual(rule?.matches[1]?.options[0]?.values, ['-j']);
  assert.equal(rule?.target?.name, 'ACCEPT');
});

test('a line that is not a rule is undefined', () => {
  for (const line of ['', ':KUBE-X - [0:0]', 'COMMIT', '-A', '-X KUBE-X'])
    assert.equal(parseRule(line), undefined);
});

test('rules with the same meaning have one canonical spelling', () => {
  const pairs = [
    [
      '-A KUBE-S -m comment --comment "x cluster IP" -m tcp -p tcp -d 10.96.0.1 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
      '-A KUBE-S ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m comment --comment "x cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ',
    ],
    ['-A C -j MARK --or-mark 0x00004000', '-A C -j MARK --set-xmark 0x4000/0x4000'],
    ['-A C -j MARK --xor-mark 0x80000000', '-A C -j MARK --set-xmark 0x80000000/0x0'],
    [
      '-A C -m udp -p udp -j DNAT --to-destination [fd00::1]:53',
      '-A C -p udp -j DNAT --to-destination [fd00::1]:53',
    ],
    [
      '-A C -m recent --name S --rcheck --seconds 60 --reap -j S',
      '-A C -m recent --rcheck --seconds 60 --reap --name S --mask 255.255.255.255 --rsource -j S',
    ],
    [
      '-A C -m statistic --mode random --probability 0.3333333333 -j S',
      '-A C -m statistic --mode random --probability 0.33333333349 -j S',
    ],
    ['-A C -j REJECT', '-A C -j REJECT --reject-with icmp-port-unreachable'],
    ['-A C -m nfacct --nfacct-name n -j DROP', '-A C -m nfacct --nfacct-name  n -j DROP'],
  ] as const;
  for (const [restored, saved] of pairs) {
    assert.equal(canonicalRule(restored, 'IPv4'), canonicalRule(saved, 'IPv4'));
  }
  const spellings = pairs.map(([restored]) => canonicalRule(restored, 'IPv4'));
  assert.equal(new Set(spellings).size, pairs.length);
  const negated = pairs[0][0];
  assert.notEqual(canonicalRule(negated, 'IPv4'), canonicalRule(negated.replace('! -s', '-s'), 'IPv4'));
});

test('a dump is read with and without counters', () => {
  const table = new SavedTable('nat');
  for (const line of [
    '# x',
    '*nat',
    ':KUBE-A - [0:0]',
    '[12:720] -A KUBE-A -j RETURN',
    '-A KUBE-A -j DROP',
    'COMMIT',
  ])
    table.take(line);
  assert.deepEqual([...table.chains()], ['KUBE-A']);
  assert.deepEqual(table.lines('KUBE-A'), ['-A KUBE-A -j RETURN', '-A KUBE-A -j DROP']);
  assert.deepEqual(
    [...table.rules('KUBE-A')].map(({ rule }) => rule.target?.name),
    ['RETURN', 'DROP'],
  );
});

test('no line makes the rule parser fail', () => {
  const words = fc.constantFrom(
    '-A',
    '!',
    '-j',
    '-g',
    '-m',
    '--comment',
    '"',
    '\\',
    '-s',
    '0x/',
    '/',
    ':',
    '[1:2]',
    ' ',
  );
  const line = fc.array(fc.oneof(words, fc.string()), { maxLength: 30 }).map((parts) => parts.join(' '));
  fc.assert(
    fc.property(line, (text) => {
      const rule = parseRule(`-A ${text}`);
      assert.ok(rule === undefined || rule.chain !== '');
      canonicalRule(`-A ${text}`, 'IPv4');
      new SavedTable('nat').take(text);
    }),
  );
});

test('a long line is read in time that grows with its length', () => {
  const rule = parseRule(`-A KUBE-X ${'-m x --y '.repeat(100_000)}${'"\\" '.repeat(100_000)}`);
  assert.equal(rule?.matches.length, 100_001);
});
