import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defineFlag, type Flag, parseFlags } from './flag-set.ts';
import { bool, duration, float32, int32, level, string, stringSlice } from './flag-types.ts';
import { UsageError } from './usage-error.ts';

type Target = { [name: string]: unknown };

const write = (name: string) => (target: Target, value: unknown) => {
  target[name] = value;
};
const common = (name: string) => ({ name, help: '', write: write(name) });

const flags: Flag<Target>[] = [
  defineFlag({ ...common('on'), type: bool, default: false }),
  defineFlag({ ...common('help'), shorthand: 'h', type: bool, default: false }),
  defineFlag({ ...common('word'), type: string, default: 'w' }),
  defineFlag({ ...common('two-words'), type: string, default: '' }),
  defineFlag({ ...common('count'), type: int32, default: 7 }),
  defineFlag({ ...common('rate'), type: float32, default: 5 }),
  defineFlag({ ...common('period'), type: duration, default: 0n }),
  defineFlag({ ...common('list'), type: stringSlice, default: [] }),
  defineFlag({ ...common('v'), shorthand: 'v', type: level, default: 0 }),
  defineFlag({ ...common('old'), type: string, default: '', deprecated: 'use --word' }),
];

function read(...argv: string[]): { values: Target; positionals: readonly string[] } {
  const parsed = parseFlags(flags, argv);
  const values: Target = {};
  parsed.writeTo(values);
  assert.deepEqual(Object.keys(values).sort(), [...parsed.changed].sort());
  return { values, positionals: parsed.positionals };
}

const accepted: [argv: string[], values: Target, positionals?: string[]][] = [
  [[], {}],
  [['--word=x'], { word: 'x' }],
  [['--word', 'x'], { word: 'x' }],
  [['--word='], { word: '' }],
  [['--word=a=b'], { word: 'a=b' }],
  [['--word', '--on'], { word: '--on' }],
  [['--word', '--'], { word: '--' }],
  [['--word=a', '--word=b'], { word: 'b' }],
  [['--two_words=x'], { 'two-words': 'x' }],
  [['--on'], { on: true }],
  [['--on=false'], { on: false }],
  [['--on', 'false'], { on: true }, ['false']],
  [['--on', '--on=F'], { on: false }],
  [['--count=0x10'], { count: 16 }],
  [['--count', '-1'], { count: -1 }],
  [['--rate=1e1'], { rate: 10 }],
  [['--period=0'], { period: 0n }],
  [['--list=a,b', '--list', 'c'], { list: ['a', 'b', 'c'] }],
  [['-v4'], { v: 4 }],
  [['-v=4'], { v: 4 }],
  [['-v', '4'], { v: 4 }],
  [['--v=4'], { v: 4 }],
  [['-h'], { help: true }],
  [['-h=false'], { help: false }],
  [['-hv4'], { help: true, v: 4 }],
  [['-hv', '4'], { help: true, v: 4 }],
  [['a', '--word=x', 'b'], { word: 'x' }, ['a', 'b']],
  [['--on', '--', '--word=x', '-v'], { on: true }, ['--word=x', '-v']],
  [['-', ''], {}, ['-', '']],
];

for (const [argv, values, positionals = []] of accepted) {
  test(`reads ${JSON.stringify(argv)}`, () => assert.deepEqual(read(...argv), { values, positionals }));
}

const refused: [argv: string[], message: string][] = [
  [['--nope'], 'unknown flag: --nope'],
  [['--no_pe=1'], 'unknown flag: --no_pe'],
  [['--=x'], 'bad flag syntax: --=x'],
  [['---word'], 'bad flag syntax: ---word'],
  [['-proxy-mode=x'], "unknown shorthand flag: 'p' in -proxy-mode=x"],
  [['-hx'], "unknown shorthand flag: 'x' in -x"],
  [['-h='], "unknown shorthand flag: '=' in -="],
  [["-'"], "unknown shorthand flag: '\\'' in -'"],
  [['-é'], "unknown shorthand flag: 'Ã' in -é"],
  [['--word'], 'flag needs an argument: --word'],
  [['--two_words'], 'flag needs an argument: --two_words'],
  [['-v'], "flag needs an argument: 'v' in -v"],
  [['-hv'], "flag needs an argument: 'v' in -v"],
  [['-v='], 'invalid argument "=" for "-v, --v" flag: strconv.ParseUint: parsing "=": invalid syntax'],
  [
    ['-version'],
    'invalid argument "ersion" for "-v, --v" flag: strconv.ParseUint: parsing "ersion": invalid syntax',
  ],
  [
    ['--on=maybe'],
    'invalid argument "maybe" for "--on" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
  ],
  [['--on='], 'invalid argument "" for "--on" flag: strconv.ParseBool: parsing "": invalid syntax'],
  [
    ['--count=abc'],
    'invalid argument "abc" for "--count" flag: strconv.ParseInt: parsing "abc": invalid syntax',
  ],
  [
    ['--count', '3000000000'],
    'invalid argument "3000000000" for "--count" flag: strconv.ParseInt: parsing "3000000000": value out of range',
  ],
  [['--rate=x'], 'invalid argument "x" for "--rate" flag: strconv.ParseFloat: parsing "x": invalid syntax'],
  [['--period=30'], 'invalid argument "30" for "--period" flag: time: missing unit in duration "30"'],
  [
    ['--list=a"b'],
    'invalid argument "a\\"b" for "--list" flag: parse error on line 1, column 2: bare " in non-quoted-field',
  ],
];

for (const [argv, message] of refused) {
  test(`refuses ${JSON.stringify(argv)}`, () => {
    assert.throws(
      () => read(...argv),
      (error) => error instanceof UsageError && error.message === message,
    );
  });
}

test('a deprecated flag warns once per use', () => {
  const line = 'Flag --old has been deprecated, use --word';
  assert.deepEqual(parseFlags(flags, ['--old=1', '--word=x', '--old', '2']).warnings, [line, line]);
  assert.deepEqual(parseFlags(flags, ['--word=x']).warnings, []);
});

test('a deprecated flag does not warn when the command line is wrong', () => {
  assert.throws(
    () => parseFlags(flags, ['--old=1', '--nope']),
    (error) => error instanceof UsageError && error.warnings.length === 0,
  );
});

test('texts list every flag by name', () => {
  const { texts } = parseFlags(flags, ['--two_words=x', '--list=a,b']);
  assert.deepEqual(
    [...texts].map(([name, text]) => `${name}=${text}`),
    [
      'count=7',
      'help=false',
      'list=[a,b]',
      'old=',
      'on=false',
      'period=0s',
      'rate=5',
      'two-words=x',
      'v=0',
      'word=w',
    ],
  );
});

test('a parse does not affect the next one', () => {
  read('--word=x', '--list=a');
  assert.equal(parseFlags(flags, []).texts.get('word'), 'w');
  assert.deepEqual(read('--list=b').values, { list: ['b'] });
});

test('any arguments parse or give a UsageError', () => {
  const piece = fc.constantFrom(
    '-',
    '--',
    '=',
    'v',
    'h',
    'word',
    'on',
    'count',
    'list',
    '4',
    '"',
    '_',
    ' ',
    'é',
    '\n',
  );
  const argument = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')),
  );
  fc.assert(
    fc.property(fc.array(argument, { maxLength: 6 }), (argv) => {
      try {
        parseFlags(flags, argv);
      } catch (error) {
        assert.ok(error instanceof UsageError, String(error));
      }
    }),
    { numRuns: 1000 },
  );
});

test('--x=y means the same as --x y for flags that take a value', () => {
  const names = fc.constantFrom('word', 'count', 'rate', 'period', 'list', 'v');
  const outcome = (argv: string[]) => {
    try {
      return [...parseFlags(flags, argv).texts];
    } catch (error) {
      return (error as Error).message;
    }
  };
  const values = fc.oneof(
    fc.string(),
    fc.nat().map(String),
    fc.constantFrom('1s', 'a,b', '--on', '-v4', '--'),
  );
  fc.assert(
    fc.property(names, values, (name, value) => {
      assert.deepEqual(outcome([`--${name}=${value}`]), outcome([`--${name}`, value]));
    }),
  );
});
