import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeConfig, strictDecodingError } from './decode.ts';
import { applyPlatformDefaults } from './defaults.ts';
import { ConfigError, joinMessages } from './errors.ts';
import { FeatureGates } from './feature-gates.ts';
import { validateConfig } from './validate.ts';
import { validateLogging } from './validate-logging.ts';

interface Case {
  readonly case: string;
  readonly config: string;
  readonly stderr: string[];
}

const vector = new URL('../../test/vectors/cli/bad-configs.json', import.meta.url);
const recorded: { cases: Case[] } = JSON.parse(readFileSync(vector, 'utf8'));

/** Parts of upstream's messages that we say otherwise on purpose. */
const otherWords: readonly { reason: string; upstream: RegExp; ours: string }[] = [
  { reason: 'names a file of upstream’s source', upstream: / in scheme "[^"]*"/, ours: '' },
  {
    reason: 'prints the Go type of an unnamed struct',
    upstream: /of type struct \{.*\}$/,
    ours: 'of type KubeProxyConfiguration',
  },
  {
    reason: 'lists the modes, of which there is one more here',
    upstream: /iptables, ipvs, nftables or blank/,
    ours: 'iptables, ipvs, nftables, userspace or blank',
  },
  {
    reason: 'computed from a build without a version number',
    upstream: /'0\.18446744073709551615'/,
    ours: "'1.36'",
  },
];

/** Configurations that we accept and upstream does not. */
const accepted = new Map([['userspace-mode', 'the mode that upstream dropped in 1.26 is alive here']]);

/** What upstream logged, without the errors of steps that come after the configuration. */
function upstreamErrors({ stderr }: Case): string[] {
  const later = /^(?:stat |unable to load in-cluster)/;
  const errors = stderr.flatMap((line) => /\berr="((?:[^"\\]|\\.)*)"$/.exec(line)?.[1] ?? []);
  return errors.map((text) => String(JSON.parse(`"${text}"`))).filter((text) => !later.test(text));
}

/** The configuration's way through start-up, with upstream's name for the step that fails. */
async function ourErrors(text: string): Promise<string[]> {
  const { config: decoded, strictErrors } = await step('failed complete: failed to decode: ', () =>
    decodeConfig(text),
  );
  const strict = strictErrors.length > 0 ? [strictDecodingError(strictErrors)] : [];
  const { config } = applyPlatformDefaults(decoded);
  const gates = await step('failed complete: ', () => FeatureGates.of(config.featureGates));
  const logging = validateLogging(config.logging, gates, 'logging');
  if (logging.length > 0) return [...strict, `initialize logging: ${joinMessages(logging)}`];
  const errors = validateConfig(config, gates);
  return errors.length > 0 ? [...strict, `failed validate: ${joinMessages(errors)}`] : strict;
}

async function step<T>(prefix: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    throw new ConfigError(prefix + error.message);
  }
}

for (const recordedCase of recorded.cases) {
  test(`as upstream: ${recordedCase.case}`, async () => {
    const ours = await ourErrors(recordedCase.config).catch((error: Error) => [error.message]);
    // The recording lost the record of the repeated key, which upstream spreads over several lines.
    const comparable = ours.filter((text) => !text.includes('already set in map'));
    const expected = upstreamErrors(recordedCase).map((text) =>
      otherWords.reduce((changed, { upstream, ours }) => changed.replace(upstream, ours), text),
    );
    assert.deepEqual(comparable, accepted.has(recordedCase.case) ? [] : expected);
  });
}

test('every recorded case is tested, and every exception is needed', () => {
  assert.equal(recorded.cases.length, 51);
  const texts = recorded.cases.flatMap(upstreamErrors);
  for (const { upstream } of otherWords)
    assert.ok(
      texts.some((text) => upstream.test(text)),
      String(upstream),
    );
  for (const name of accepted.keys())
    assert.ok(
      recorded.cases.some((entry) => entry.case === name),
      name,
    );
});
