import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sysctl, SysctlError } from './sysctl.ts';

function fakeFiles(initial: Record<string, string>, readOnly = false) {
  const files = new Map(Object.entries(initial));
  const written: string[] = [];
  return {
    written,
    read(path: string): string {
      const text = files.get(path);
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    },
    write(path: string, text: string): void {
      if (readOnly) throw new Error('EROFS: read-only file system');
      written.push(`${path}=${text}`);
      files.set(path, text);
    },
  };
}

test('a sysctl is read as a decimal integer, or else as undefined', () => {
  const sysctl = new Sysctl(
    fakeFiles({ '/root/a': '42\n', '/root/b': '-1\n', '/root/c': '1 2\n', '/root/d': '' }),
    '/root',
  );
  assert.deepEqual(
    ['a', 'b', 'c', 'd', 'e'].map((name) => sysctl.read(name)),
    [42, -1, undefined, undefined, undefined],
  );
});

test('ensure writes a sysctl only when its value differs or is unreadable', () => {
  const files = fakeFiles({
    '/proc/sys/net/ipv4/ip_forward': '1\n',
    '/proc/sys/net/ipv4/vs/conntrack': '0\n',
  });
  const sysctl = new Sysctl(files);
  assert.equal(sysctl.ensure('net/ipv4/ip_forward', 1), false);
  assert.equal(sysctl.ensure('net/ipv4/vs/conntrack', 1), true);
  assert.equal(sysctl.ensure('net/new', 2), true);
  assert.deepEqual(files.written, ['/proc/sys/net/ipv4/vs/conntrack=1', '/proc/sys/net/new=2']);
});

test('a refused sysctl write names setting, value and reason; a correct value is not written', () => {
  const sysctl = new Sysctl(fakeFiles({ '/proc/sys/a/b': '1' }, true));
  assert.equal(sysctl.ensure('a/b', 1), false);
  assert.throws(
    () => sysctl.ensure('a/b', 2),
    (error) =>
      error instanceof SysctlError &&
      error.sysctl === 'a/b' &&
      error.message === "can't set sysctl a/b to 2: EROFS: read-only file system",
  );
});
