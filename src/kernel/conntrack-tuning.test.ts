import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOUR, MILLISECOND, SECOND } from '../lib/duration.ts';
import { silentLogger } from '../obs/log.ts';
import { type ConntrackSettings, countCPUs, tableSize, tuneConntrack } from './conntrack-tuning.ts';
import type { SystemFiles } from './system-files.ts';

const defaults: ConntrackSettings = {
  maxPerCore: 32768,
  min: 131072,
  tcpEstablishedTimeout: 24n * HOUR,
  tcpCloseWaitTimeout: HOUR,
  tcpBeLiberal: false,
  udpTimeout: 0n,
  udpStreamTimeout: 0n,
};

const netfilter = '/proc/sys/net/netfilter/';
const hashsize = '/sys/module/nf_conntrack/parameters/hashsize';

/** A file system in memory that records writes; paths in `readOnly` refuse them. */
function fakeFiles(contents: Record<string, string>, readOnly: readonly string[] = []) {
  const writes: [string, string][] = [];
  const files: SystemFiles = {
    read(path) {
      const text = contents[path];
      if (text === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
      return text;
    },
    write(path, text) {
      if (readOnly.includes(path)) throw new Error(`EROFS: read-only file system, open '${path}'`);
      writes.push([path, text]);
      contents[path] = text;
    },
  };
  return { files, writes };
}

test('the conntrack table size scales with cores, has a minimum and a cap', () => {
  const rows: [Partial<ConntrackSettings>, number, number][] = [
    [{}, 8, 262144],
    [{}, 2, 131072],
    [{}, 64, 1048576],
    [{ min: 2_000_000 }, 64, 1048576],
    [{ min: 2_000_000 }, 2, 2_000_000],
    [{ maxPerCore: 0 }, 8, 0],
    [{ maxPerCore: null }, 8, 0],
    [{ min: null }, 2, 65536],
    [{ min: 0 }, 1, 32768],
  ];
  for (const [settings, cpus, expected] of rows) {
    assert.equal(
      tableSize({ ...defaults, ...settings }, () => cpus),
      expected,
      JSON.stringify([settings, cpus]),
    );
  }
});

test('CPUs are counted in the kernel list format', () => {
  const rows: [string, number][] = [
    ['0\n', 1],
    ['0-3\n', 4],
    ['0-3,8', 5],
    ['0,2,4-7', 6],
    ['', 0],
    ['x', 0],
    ['0-', 0],
  ];
  for (const [list, expected] of rows) assert.equal(countCPUs(list), expected, list);
});

test('conntrack defaults on 8 CPUs write the table size, the hash size and two timeouts, in this order', () => {
  const { files, writes } = fakeFiles({
    '/sys/devices/system/cpu/online': '0-7\n',
    [`${netfilter}nf_conntrack_max`]: '65536\n',
    [hashsize]: '16384\n',
    [`${netfilter}nf_conntrack_tcp_timeout_established`]: '432000\n',
    [`${netfilter}nf_conntrack_tcp_timeout_close_wait`]: '60\n',
  });
  tuneConntrack(defaults, files, silentLogger);
  assert.deepEqual(writes, [
    [`${netfilter}nf_conntrack_max`, '262144'],
    [hashsize, '65536'],
    [`${netfilter}nf_conntrack_tcp_timeout_established`, '86400'],
    [`${netfilter}nf_conntrack_tcp_timeout_close_wait`, '3600'],
  ]);
});

test('conntrack values that already match are not written, so /proc/sys may be read-only', () => {
  const contents = {
    '/sys/devices/system/cpu/online': '0-1',
    [`${netfilter}nf_conntrack_max`]: '131072',
    [hashsize]: '65536',
    [`${netfilter}nf_conntrack_tcp_timeout_established`]: '86400',
    [`${netfilter}nf_conntrack_tcp_timeout_close_wait`]: '3600',
  };
  const { files, writes } = fakeFiles(contents, Object.keys(contents));
  tuneConntrack(defaults, files, silentLogger);
  assert.deepEqual(writes, []);
});

test('the error of a conntrack setting that cannot be written has path and value', () => {
  const path = `${netfilter}nf_conntrack_max`;
  const { files } = fakeFiles({ '/sys/devices/system/cpu/online': '0-1', [path]: '1' }, [path]);
  assert.throws(
    () => tuneConntrack(defaults, files, silentLogger),
    /can't set sysctl net\/netfilter\/nf_conntrack_max to 131072: EROFS/,
  );
});

test('a missing conntrack hash size file (module not loaded) is an error', () => {
  const path = `${netfilter}nf_conntrack_max`;
  const { files } = fakeFiles({ '/sys/devices/system/cpu/online': '0-1', [path]: '131072' });
  assert.throws(
    () => tuneConntrack(defaults, files, silentLogger),
    /can't raise .*hashsize to 32768: ENOENT/,
  );
});

test('optional conntrack settings are written, and a timeout below one second becomes 0', () => {
  const { files, writes } = fakeFiles({});
  const settings: ConntrackSettings = {
    maxPerCore: 0,
    min: 131072,
    tcpEstablishedTimeout: 0n,
    tcpCloseWaitTimeout: null,
    tcpBeLiberal: true,
    udpTimeout: 500n * MILLISECOND,
    udpStreamTimeout: 120n * SECOND + 999n * MILLISECOND,
  };
  tuneConntrack(settings, files, silentLogger);
  assert.deepEqual(writes, [
    [`${netfilter}nf_conntrack_tcp_be_liberal`, '1'],
    [`${netfilter}nf_conntrack_udp_timeout`, '0'],
    [`${netfilter}nf_conntrack_udp_timeout_stream`, '120'],
  ]);
});
