import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Libc } from '../../native/libc.ts';
import { SystemError } from '../../native/system-error.ts';
import { openTableSizes } from './table-size.ts';

const ENOENT = 2;

function fakeLibc() {
  const calls: string[] = [];
  const libc = {
    socket: (domain: number, type: number, protocol: number) => {
      calls.push(`socket ${domain} ${type} ${protocol}`);
      return 9;
    },
    getsockopt: (fd: number, level: number, option: number, value: Uint8Array) => {
      const name = Buffer.from(value.subarray(0, 32)).toString().replaceAll('\0', '');
      calls.push(`get ${fd} ${level} ${option} ${name} ${value.length}`);
      if (name !== 'nat') throw new SystemError('getsockopt', ENOENT);
      const view = new DataView(value.buffer);
      view.setUint32(76, 5, true);
      view.setUint32(80, 784, true);
    },
    close: (fd: number) => void calls.push(`close ${fd}`),
  };
  return { calls, libc: libc as unknown as Libc };
}

test('the size of a table is read by name, with the socket option of its family', () => {
  for (const [family, domain, level] of [
    ['IPv4', 2, 0],
    ['IPv6', 10, 41],
  ] as const) {
    const { libc, calls } = fakeLibc();
    const sizes = openTableSizes(libc, family);
    assert.deepEqual(sizes.read('nat'), { entries: 5, bytes: 784 });
    assert.throws(() => sizes.read('raw'), { code: 'ENOENT' });
    assert.throws(() => sizes.read('x'.repeat(32)), RangeError);
    sizes.close();
    assert.deepEqual(calls, [
      `socket ${domain} 2 0`,
      `get 9 ${level} 64 nat 84`,
      `get 9 ${level} 64 raw 84`,
      'close 9',
    ]);
  }
});
