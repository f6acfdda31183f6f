import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { RunProgram } from '../../kernel/program.ts';
import { checkModules, explainModules, wantedModules } from './module-check.ts';

const release = '6.1.0-18-amd64';
const five = ['ip_vs', 'ip_vs_rr', 'ip_vs_wrr', 'ip_vs_sh', 'nf_conntrack'];

suite('wanted', () => {
  for (const [kernel, conntrack] of [
    ['3.10.0-957.1.3.el7.x86_64', 'nf_conntrack_ipv4'],
    ['4.18.0', 'nf_conntrack_ipv4'],
    ['4.19.0', 'nf_conntrack'],
    ['5.4.0', 'nf_conntrack'],
    ['?', 'nf_conntrack'],
  ] as const) {
    test(`${kernel}: ${conntrack}`, () => assert.equal(wantedModules(kernel, 'rr').at(-1), conntrack));
  }

  test('the scheduler is one of the wanted modules, once', () => {
    assert.deepEqual(wantedModules(release, 'rr'), five);
    assert.deepEqual(wantedModules(release, 'mh'), [...five.slice(0, 4), 'ip_vs_mh', 'nf_conntrack']);
  });
});

suite('found', () => {
  test('modules are found in the list of loaded ones, by whole names', async () => {
    const loaded = `${five.slice(1).join(' 1 0 - Live 0x0\n')} 1 0\n\nip_vs_ftp 1 0 - Live\n`;
    const { missing, tried } = await check({ '/proc/modules': loaded });
    assert.deepEqual(missing, ['ip_vs']);
    assert.deepEqual(tried, ['ip_vs']);
  });

  test('modules are found among those built in', async () => {
    const builtin = five.map((name) => `kernel/net/${name}.ko\n`).join('');
    const files = { '/proc/modules': '', [`/lib/modules/${release}/modules.builtin`]: builtin };
    assert.deepEqual(await check(files), { missing: [], tried: [] });
  });

  test('the conntrack module is found by its settings', async () => {
    const files = { '/proc/modules': '', '/proc/sys/net/netfilter/nf_conntrack_max': '262144\n' };
    assert.deepEqual((await check(files)).missing, five.slice(0, 4));
  });

  test('modules are found in the configuration of a kernel without modules', async () => {
    const config = 'CONFIG_IP_VS=y\nCONFIG_IP_VS_RR=y\nCONFIG_IP_VS_WRR=m\n# CONFIG_IP_VS_SH is not set\n';
    const { missing } = await check({ [`/boot/config-${release}`]: config });
    assert.deepEqual(missing, ['ip_vs_wrr', 'ip_vs_sh', 'nf_conntrack']);
  });

  test('modules are found by loading them, the scheduler included', async () => {
    const loadable = new Set([...five, 'ip_vs_mh']);
    const { missing, tried } = await check({ '/proc/modules': '' }, loadable, 'mh');
    assert.deepEqual(missing, []);
    assert.deepEqual(tried, wantedModules(release, 'mh'));
  });
});

suite('explained', () => {
  test('missing modules are explained with the words of modprobe and a remedy', async () => {
    const report = await checkModules(context({ '/proc/modules': five.slice(1).join('\n') }), 'foo');
    assert.equal(
      explainModules(report),
      `missing modules of kernel ${release}: ip_vs, ip_vs_foo (modprobe: FATAL: Module ip_vs not found); ` +
        'load them on the node with "modprobe -a ip_vs ip_vs_foo", or install the package that has them',
    );
  });

  test('missing modules are explained without modprobe and readable files', async () => {
    const files = { read: () => assert.fail('cannot be read') };
    const run = async () => Promise.reject(new Error('spawn modprobe ENOENT'));
    const report = await checkModules({ files, run }, 'rr');
    assert.match(
      explainModules(report),
      /^missing modules of this kernel: ip_vs, .*\(spawn modprobe ENOENT\)/,
    );
  });

  test('the explanation is empty when no module is missing', () => {
    assert.equal(explainModules({ release, missing: [], words: '' }), '');
  });
});

async function check(
  files: Readonly<Record<string, string>>,
  loadable: ReadonlySet<string> = new Set(),
  scheduler = 'rr',
): Promise<{ missing: readonly string[]; tried: string[] }> {
  const tried: string[] = [];
  const { missing } = await checkModules(context(files, loadable, tried), scheduler);
  return { missing, tried };
}

function context(
  files: Readonly<Record<string, string>>,
  loadable: ReadonlySet<string> = new Set(),
  tried: string[] = [],
) {
  const all: Readonly<Record<string, string>> = { '/proc/sys/kernel/osrelease': `${release}\n`, ...files };
  const run: RunProgram = async (program, [, module = '']) => {
    assert.equal(program, 'modprobe');
    tried.push(module);
    const output = `modprobe: FATAL: Module ${module} not found\nmore\n`;
    return loadable.has(module)
      ? { status: 0, timedOut: false, output: '' }
      : { status: 1, timedOut: false, output };
  };
  const read = (path: string) => all[path] ?? assert.fail(`no ${path}`);
  return { files: { read }, run };
}
