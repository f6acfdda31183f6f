import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processText } from './process-name.ts';

function proc(files: Record<string, string>) {
  return {
    read(path: string): string {
      const text = files[path];
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    },
  };
}

const status = (name: string, process: number, parent: number) =>
  `Name:\t${name}\nUmask:\t0022\nState:\tR (running)\nTgid:\t${process}\nNgid:\t0\nPid:\t8\nPPid:\t${parent}\n`;

test('a thread is named by its process', () => {
  const files = proc({
    '/proc/71/status': status('libuv-worker', 70, 1),
    '/proc/70/cmdline': 'node\0--max-semi-space-size=2\0/usr/lib/kube-proxy.js\0--config\0c\0',
    '/proc/1/cmdline': '/sbin/init\0',
  });
  assert.equal(processText({ pid: 71, processName: 'libuv-worker' }, files), 'kube-proxy[70]');
});

test('a program that a kube-proxy started is named with it', () => {
  const files = proc({
    '/proc/80/status': status('nft', 80, 7),
    '/proc/80/cmdline': 'nft\0-f\0-\0',
    '/proc/7/cmdline': '/usr/local/bin/kube-proxy\0--config=c\0',
  });
  assert.equal(processText({ pid: 80, processName: 'nft' }, files), 'nft[80] of kube-proxy[7]');
});

test('the kernel names a process that has ended, or that has the id of another one here', () => {
  assert.equal(processText({ pid: 80, processName: 'nft' }, proc({})), 'nft[80]');
  const elsewhere = proc({ '/proc/80/status': status('bash', 80, 7), '/proc/80/cmdline': 'bash\0' });
  assert.equal(processText({ pid: 80, processName: 'nft' }, elsewhere), 'nft[80]');
});
