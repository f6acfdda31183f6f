import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasIPv6, isAtLeast, kernelVersion, parseKernelRelease } from './probe.ts';

function files(contents: Record<string, string>) {
  return {
    read(path: string): string {
      const text = contents[path];
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    },
    write: () => assert.fail('a probe writes nothing'),
  };
}

test('kernel releases are parsed into versions', () => {
  const parsed = ['6.1.0-18-amd64\n', '5.13-rc1', '6.18.44-fc', '5.4.0+', '4', 'linux', '', '5.x'].map(
    parseKernelRelease,
  );
  assert.deepEqual(parsed, [
    { major: 6, minor: 1 },
    { major: 5, minor: 13 },
    { major: 6, minor: 18 },
    { major: 5, minor: 4 },
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assert.deepEqual(kernelVersion(files({ '/proc/sys/kernel/osrelease': '6.1.0\n' })), { major: 6, minor: 1 });
  assert.throws(
    () => kernelVersion(files({ '/proc/sys/kernel/osrelease': 'odd\n' })),
    /kernel release "odd"/,
  );
  assert.throws(() => kernelVersion(files({})), /ENOENT/);
});

test('kernel versions compare by major, then minor', () => {
  const minimum = { major: 5, minor: 13 };
  const at = (major: number, minor: number) => isAtLeast({ major, minor }, minimum);
  assert.deepEqual([at(5, 13), at(5, 12), at(6, 0), at(4, 99)], [true, false, true, false]);
});

test('IPv6 is usable when the kernel has it and it is not disabled', () => {
  const inet6 = { '/proc/net/if_inet6': '' };
  const disabled = '/proc/sys/net/ipv6/conf/all/disable_ipv6';
  assert.equal(hasIPv6(files({})), false);
  assert.equal(hasIPv6(files(inet6)), true);
  assert.equal(hasIPv6(files({ ...inet6, [disabled]: '0\n' })), true);
  assert.equal(hasIPv6(files({ ...inet6, [disabled]: '1\n' })), false);
});
