import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseCommandLine } from './command-line.ts';
import { allFlags } from './flags.ts';
import { UsageError } from './usage-error.ts';

test('a command line without --help or --version runs', () => {
  const parsed = parseCommandLine(['--proxy_mode=nftables', '']);
  assert.equal(parsed.action, 'run');
  assert.equal(parsed.action === 'run' && parsed.options.draft.mode, 'nftables');
  assert.deepEqual(parsed.warnings, []);
});

const refused: [argv: string[], message: string][] = [
  [['a', 'b'], '"kube-proxy" does not take any arguments, got ["a" "b"]'],
  [['--cleanup', 'false'], '"kube-proxy" does not take any arguments, got ["false"]'],
  [['', 'a\n'], '"kube-proxy" does not take any arguments, got ["" "a\\n"]'],
  [['--version', 'x'], '"kube-proxy" does not take any arguments, got ["x"]'],
  [['--help', '--nope'], 'unknown flag: --nope'],
  [['x', '--nope'], 'unknown flag: --nope'],
  [
    ['--feature-gates=Nope'],
    'invalid argument "Nope" for "--feature-gates" flag: malformed pair, expect string=bool',
  ],
  [['--bind-address', 'x'], 'invalid argument "x" for "--bind-address" flag: "x" is not a valid IP address'],
  [
    ['--log-text-info-buffer-size=many'],
    `invalid argument "many" for "--log-text-info-buffer-size" flag: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
  ],
  [
    ['--version=v1.36.0'],
    'invalid argument "v1.36.0" for "--version" flag: version "v1.36.0" must match major/minor/patch of default version "v1.37.0"',
  ],
];

for (const [argv, message] of refused) {
  test(`refuses ${JSON.stringify(argv)}`, () => {
    assert.throws(
      () => parseCommandLine(argv),
      (error) => {
        assert.ok(error instanceof UsageError);
        assert.equal(error.message, message);
        return true;
      },
    );
  });
}

test('--help takes precedence over positional arguments and --version', () => {
  assert.equal(parseCommandLine(['-h', 'x', '--version']).action, 'help');
  assert.equal(parseCommandLine(['--help=false']).action, 'run');
});

test('--version prints and exits; --version=v… runs with that version', () => {
  const printed = parseCommandLine(['--version', '--config=/does/not/exist']);
  assert.equal(printed.action === 'version' && printed.text, 'Kubernetes v1.37.0');
  const raw = parseCommandLine(['--version=raw']);
  assert.match(raw.action === 'version' ? raw.text : '', /^version\.Info\{Major:"1", Minor:"37", /);
  const set = parseCommandLine(['--version=v1.37.0-mine']);
  assert.equal(set.action === 'run' && set.options.version.gitVersion, 'v1.37.0-mine');
});

test('deprecated flags are reported whenever all flags are valid', () => {
  const line = 'Flag --healthz-port has been deprecated, use --healthz-bind-address instead.';
  assert.deepEqual(parseCommandLine(['--healthz-port=1']).warnings, [line]);
  assert.deepEqual(parseCommandLine(['--healthz-port=1', '--help']).warnings, [line]);
  assert.throws(
    () => parseCommandLine(['--healthz-port=1', 'x']),
    (error) => error instanceof UsageError && error.warnings[0] === line,
  );
});

test('any arguments parse or give a UsageError', () => {
  const name = fc.constantFrom(...allFlags.map((flag) => flag.name));
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom('1', '0', 'true', '1s', 'a=1', '::1', '1.2.3.4:5', 'v1.37.0', '"'),
  );
  const argument = fc.oneof(
    fc.string(),
    fc.tuple(name, value).map(([n, v]) => `--${n}=${v}`),
    name.map((n) => `--${n}`),
    value.map((v) => `-v${v}`),
  );
  fc.assert(
    fc.property(fc.array(argument, { maxLength: 5 }), (argv) => {
      try {
        parseCommandLine(argv);
      } catch (error) {
        assert.ok(error instanceof UsageError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});
