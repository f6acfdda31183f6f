import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Family } from '../../model/ip.ts';
import type { Libc } from '../../native/libc.ts';
import { SystemError } from '../../native/system-error.ts';
import { readTableChains } from './table-chains.ts';

const GET_INFO = 64;
const EAGAIN = 11;
const ACCEPT = -2;
const RETURN = -5;

/** The head of an entry, without matches. */
const headLengths: Record<Family, number> = { IPv4: 112, IPv6: 168 };
const targetOffsets: Record<Family, number> = { IPv4: 88, IPv6: 140 };

/** An entry with a verdict, or with the offset of a chain to jump to, or one that names the chain that follows. */
function entry(family: Family, target: number | string, matchBytes = 0): Buffer {
  const head = headLengths[family] + matchBytes;
  const isHeading = typeof target === 'string';
  const bytes = Buffer.alloc(head + (isHeading ? 64 : 40));
  bytes.writeUInt16LE(head, targetOffsets[family]);
  bytes.writeUInt16LE(bytes.length, targetOffsets[family] + 2);
  if (isHeading) {
    bytes.write('ERROR', head + 2);
    bytes.write(target, head + 32);
  } else {
    bytes.writeInt32LE(target, head + 32);
  }
  return bytes;
}

/** A kernel with a table whose OUTPUT jumps to KUBE-X, which has two rules; its first answers are `refusals`. */
function kernelOf(family: Family, refusals = 0) {
  const size = (verdict: number | string) => entry(family, verdict).length;
  const chainX = size(0) + 8 + size(ACCEPT) + size('KUBE-X');
  const table = Buffer.concat([
    entry(family, chainX, 8),
    entry(family, ACCEPT),
    entry(family, 'KUBE-X'),
    entry(family, ACCEPT),
    entry(family, RETURN),
    entry(family, RETURN),
    entry(family, 'KUBE-EMPTY'),
    entry(family, RETURN),
    entry(family, 'ERROR'),
  ]);
  let left = refusals;
  const open = new Set<number>();
  const libc = {
    socket: () => {
      open.add(3);
      return 3;
    },
    getsockopt: (_fd: number, _level: number, option: number, value: Uint8Array) => {
      const answer = Buffer.from(value.buffer, value.byteOffset, value.length);
      if (option !== GET_INFO) {
        if (left-- > 0) throw new SystemError('getsockopt', EAGAIN);
        assert.equal(answer.readUInt32LE(32), table.length);
        table.copy(answer, 40);
        return;
      }
      // Only the hook of OUTPUT.
      answer.writeUInt32LE(1 << 3, 32);
      answer.writeUInt32LE(0, 36 + 4 * 3);
      answer.writeUInt32LE(9, 76);
      answer.writeUInt32LE(table.length, 80);
    },
    close: (fd: number) => void open.delete(fd),
  };
  return { libc: libc as unknown as Libc, open };
}

describe('the chains of a legacy table', () => {
  for (const family of ['IPv4', 'IPv6'] as const) {
    test(`${family}: have their names, and for each rule the chain that it leads to`, () => {
      const { libc, open } = kernelOf(family);
      assert.deepEqual(
        [...readTableChains(libc, family, 'nat')],
        [
          ['OUTPUT', ['KUBE-X']],
          ['KUBE-X', [undefined, undefined]],
          ['KUBE-EMPTY', []],
        ],
      );
      assert.equal(open.size, 0);
    });
  }

  test('are read again when another program changed the table meanwhile, but not for ever', () => {
    const { libc } = kernelOf('IPv4', 3);
    assert.equal(readTableChains(libc, 'IPv4', 'nat').size, 3);
    const { libc: busy, open } = kernelOf('IPv4', 1_000);
    assert.throws(() => readTableChains(busy, 'IPv4', 'nat'), { code: 'EAGAIN' });
    assert.equal(open.size, 0);
  });
});
