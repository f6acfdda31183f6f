import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultConfig } from '../../config/defaults.ts';
import { userspaceOptions } from './options.ts';

test('the defaults are any port, a UDP timeout of a quarter of a second, and round robin', () => {
  assert.deepEqual(userspaceOptions(defaultConfig()), {
    portRange: undefined,
    udpIdleMs: 250,
    choice: 'round-robin',
  });
});

test('configured options are used', () => {
  const config = defaultConfig();
  config.userspace = { portRange: '36000+1', udpIdleTimeout: '1.5s' };
  config.ipvs.scheduler = 'lc';
  assert.deepEqual(userspaceOptions(config), {
    portRange: { first: 36000, last: 36001 },
    udpIdleMs: 1500,
    choice: 'least-connections',
  });
});

test('an unusable option is an error with field and value', () => {
  const bad: [object, RegExp][] = [
    [{ portRange: '70000' }, /^portRange: .*"70000"/],
    [{ udpIdleTimeout: '-1s' }, /^udpIdleTimeout: .*"-1s": must be greater than 0/],
    [{ udpIdleTimeout: 'x' }, /^udpIdleTimeout: .*"x"/],
  ];
  for (const [userspace, message] of bad) {
    assert.throws(() => userspaceOptions({ ...defaultConfig(), userspace }), { message });
  }
});
