/** Checks that systemd accepts the unit, and that the program runs with the privileges that the unit leaves it. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { enterNamespace, hasProgram, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { assertAnswered, becomeNode, DemoPods, webAddress } from '../package/demo-node.ts';
import { Installation } from '../program/npm-start.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const project = resolve(import.meta.dirname, '../..');
const NOBODY = 65_534;
const analyzeUnavailable = hasProgram('systemd-analyze', '--version')
  ? false
  : 'needs the program systemd-analyze';

/** Every setting of a unit, by its name. */
function settingsOf(unit: string): Map<string, string[]> {
  const settings = new Map<string, string[]>();
  for (const line of unit.split('\n')) {
    const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) settings.set(name, [...(settings.get(name) ?? []), value ?? '']);
  }
  return settings;
}

describe('the systemd unit', { skip: skip ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-systemd-'));
  const pods = new DemoPods();
  const installation = new Installation();
  // The unit as it is installed, but with other paths.
  const unit = readFileSync(join(project, 'deploy/systemd/kube-proxy-ts.service'), 'utf8')
    .replaceAll('/opt/kube-proxy-ts', installation.project)
    .replaceAll('/etc/kube-proxy-ts', directory);
  const settings = settingsOf(unit);

  before(async () => {
    becomeNode();
    await pods.start();
    cpSync(join(project, 'deploy/systemd/config.yaml'), join(directory, 'config.yaml'));
    cpSync(join(project, 'examples/shop'), join(directory, 'manifests'), { recursive: true });
    const node = join(directory, 'manifests/node.yaml');
    writeFileSync(node, readFileSync(node, 'utf8').replace('node-1', hostname().toLowerCase()));
    run('chmod', '-R', 'a+rX', directory);
  });
  after(() => {
    pods.stop();
    installation.remove();
    rmSync(directory, { recursive: true });
  });

  test('systemd-analyze accepts the unit', { skip: analyzeUnavailable }, () => {
    const file = join(directory, 'kube-proxy-ts.service');
    writeFileSync(file, unit);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
    assert.equal(stderr, '');
    assert.equal(status, 0);
  });

  test('the unit says how to install this version', () => {
    const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
      version: string;
    };
    assert.ok(unit.includes(` kube-proxy-ts-${version}.tgz\n`));
  });

  test('the unit leaves the program only CAP_NET_ADMIN, a dynamic user and no files of its own', () => {
    for (const name of ['AmbientCapabilities', 'CapabilityBoundingSet']) {
      assert.deepEqual(settings.get(name), ['CAP_NET_ADMIN']);
    }
    for (const name of [
      'DynamicUser',
      'NoNewPrivileges',
      'ProtectHome',
      'PrivateDevices',
      'ProtectKernelTunables',
    ]) {
      assert.deepEqual(settings.get(name), ['yes']);
    }
    assert.deepEqual(settings.get('ProtectSystem'), ['strict']);
    const [first = '', ...others] = settings.get('ExecStartPre') ?? [];
    assert.deepEqual(others, []);
    assert.equal(first, `+${settings.get('ExecStart')?.[0]} --init-only`);
  });

  test('the unit runs, first with all privileges for the settings, then with the remaining ones', async () => {
    const [prepare = ''] = settings.get('ExecStartPre') ?? [];
    run('sh', '-c', prepare.slice(1));
    const [command = ''] = settings.get('ExecStart') ?? [];
    const child = spawn(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', `${readOnly}exec ${confined} ${command}`],
      { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH } },
    );
    const proxy = { log: '', isRunning: true };
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      proxy.log += text;
    });
    const ended = new Promise<void>((settle) => {
      child.on('close', () => {
        proxy.isRunning = false;
        settle();
      });
    });
    try {
      await assertAnswered(webAddress, proxy);
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      assert.match(status, new RegExp(`^Uid:\\s+${NOBODY}\\s`, 'm'));
      for (const set of ['Eff', 'Prm', 'Bnd', 'Amb']) {
        assert.match(status, new RegExp(`^Cap${set}:\\s+0*1000$`, 'm'));
      }
      assert.match(status, /^NoNewPrivs:\s+1$/m);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  });
});

/** As ProtectSystem=strict and ProtectKernelTunables do. */
const readOnly = `mount --bind / / && mount -o remount,bind,ro / &&
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && `;
const confined = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
  '--no-new-privs',
  '--bounding-set=-all,+net_admin',
  '--inh-caps=-all,+net_admin',
  '--ambient-caps=-all,+net_admin',
].join(' ');
