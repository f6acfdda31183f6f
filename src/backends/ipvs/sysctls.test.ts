import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { type Logger, silentLogger } from '../../obs/log.ts';
import { setSysctls } from './sysctls.ts';

const always = [
  'net/ipv4/vs/conntrack=1',
  'net/ipv4/vs/expire_nodest_conn=1',
  'net/ipv4/vs/expire_quiescent_template=1',
  'net/ipv4/ip_forward=1',
];

suite('conn_reuse_mode', () => {
  for (const [release, outcome] of [
    ['3.10.0-957.el7.x86_64', 'logged'],
    ['4.0.9', 'logged'],
    ['4.1.0', 'set'],
    ['4.15.0-20-generic', 'set'],
    ['5.8.18', 'set'],
    ['5.9.0', 'left'],
    ['6.1.0-18-amd64', 'left'],
  ] as const) {
    test(`is ${outcome} on kernel ${release}`, () => {
      const { written, errors } = run(release);
      const [first, ...rest] = always;
      assert.deepEqual(
        written,
        outcome === 'set' ? [first, 'net/ipv4/vs/conn_reuse_mode=0', ...rest] : always,
      );
      assert.equal(errors, outcome === 'logged' ? 1 : 0);
    });
  }
});

test('ARP is made strict on request, last', () => {
  const arp = ['net/ipv4/conf/all/arp_ignore=1', 'net/ipv4/conf/all/arp_announce=2'];
  assert.deepEqual(run('6.1.0', { strictARP: true }).written, [...always, ...arp]);
});

test('what is right already is not written', () => {
  const values = new Map([
    ['net/ipv4/ip_forward', '1\n'],
    ['net/ipv4/vs/conntrack', ' 1 '],
    ['net/ipv4/vs/expire_nodest_conn', '0'],
  ]);
  assert.deepEqual(run('6.1.0', { values }).written, [
    'net/ipv4/vs/expire_nodest_conn=1',
    'net/ipv4/vs/expire_quiescent_template=1',
  ]);
});

test('a setting that cannot be written ends the start', () => {
  const start = () => run('6.1.0', { readOnly: 'net/ipv4/ip_forward' });
  assert.throws(start, /can't set sysctl net\/ipv4\/ip_forward to 1: read-only/);
});

test('a kernel of unknown version ends the start', () => {
  assert.throws(() => run('linux'), /kernel release "linux"/);
});

function run(
  release: string,
  options: { strictARP?: boolean; values?: Map<string, string>; readOnly?: string } = {},
): { written: string[]; errors: number } {
  const written: string[] = [];
  let errors = 0;
  const values = new Map([...(options.values ?? []), ['kernel/osrelease', release]]);
  const name = (path: string) => path.replace('/proc/sys/', '');
  const files: SystemFiles = {
    read(path) {
      const value = values.get(name(path));
      if (value === undefined) throw new Error('ENOENT');
      return value;
    },
    write(path, text) {
      if (name(path) === options.readOnly) throw new Error('read-only');
      written.push(`${name(path)}=${text}`);
    },
  };
  const logger: Logger = { ...silentLogger, error: () => void errors++ };
  setSysctls({ files, strictARP: options.strictARP ?? false, logger });
  return { written, errors };
}
