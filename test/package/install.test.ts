/** Checks the content of the installed package, and that any user can run it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { builtProduct } from '../../scripts/product.ts';
import { enterNamespace, hasProgram, labUnavailable, ownNamespace } from '../cluster/lab/namespace.ts';
import { brokenLinks } from '../docs/broken-links.ts';
import { type Outcome, run } from '../program/run.ts';
import { assertAnswered, DemoPods } from './demo-node.ts';
import { Installation } from './installation.ts';

const NOBODY = 65_534;
const dist = resolve(import.meta.dirname, '../../dist');
const directoryVariable = 'KPT_PACKAGE_DIRECTORY';
const skip = labUnavailable() ?? (hasProgram('npm', '--version') ? false : 'needs the program npm');

// Outside the namespace, because the registry cannot be reached from inside.
if (skip === false && ownNamespace() === undefined)
  process.env[directoryVariable] = Installation.make().directory;
if (skip === false) enterNamespace(import.meta.url);

describe('the package', { skip }, () => {
  const installation = new Installation(process.env[directoryVariable] ?? '');
  const { local, global, examples } = installation;
  const tools = join(installation.directory, 'tools');

  test('has the commands, their bundles, examples and documents, and nothing else', () => {
    const expected = [
      /^(package\.json|LICENSE|dist\/LICENSE(\.(yaml|preact|uplot))?|Dockerfile|(README|CHANGELOG|CONTRIBUTING)\.md)$/,
      /^bin\/(kube-proxy|kube-proxyctl|kubectl-kube_proxy|kubectl_complete-kube_proxy|launch)$/,
      /^dist\/(kube-proxy|kube-proxyctl|forwarder-worker)\.(js|lines)$/,
      /^dist\/(kube-proxy\.bundle|page\.(html|js|css))$/,
      /^(examples\/shop\/[a-z]+\.yaml|docs\/.+\.(md|svg|png)|(src|test)\/.+\/README\.md|deploy\/.+)$/,
    ];
    const packed = installation.packed();
    assert.deepEqual(
      packed.filter((path) => !expected.some((pattern) => pattern.test(path))),
      [],
    );
    assert.ok(
      [
        'bin/launch',
        'dist/kube-proxy.js',
        'dist/kube-proxy.bundle',
        'dist/kube-proxy.lines',
        'dist/page.js',
      ].every((path) => packed.includes(path)),
    );
  });

  test('has every file that its documents link to', () => {
    const root = join(local, 'node_modules/kube-proxy-ts');
    const pages = installation.packed().filter((path) => path.endsWith('.md'));
    const broken = brokenLinks(
      root,
      pages.map((page) => join(root, page)),
    );
    assert.deepEqual(broken, []);
  });

  /** Runs a command with only the programs of a shell script in the PATH. */
  function runAlone(command: string, args: readonly string[]): Promise<Outcome> {
    return run(command, args, { env: { PATH: tools } });
  }

  const pods = new DemoPods();
  before(async () => {
    await pods.start();
    mkdirSync(tools);
    for (const tool of ['readlink', 'dirname']) symlinkSync(`/usr/bin/${tool}`, join(tools, tool));
  });
  after(() => pods.stop());

  const places = [
    ['as a dependency', join(local, 'node_modules/.bin')],
    ['as a program of the machine', join(global, 'bin')],
  ] as const;
  for (const [how, bin] of places) {
    test(`installed ${how}, every command runs without any Node of the machine`, async () => {
      const outcomes = await Promise.all([
        runAlone(join(bin, 'kube-proxy'), ['--version']),
        runAlone(join(bin, 'kube-proxy-ts'), ['--version']),
        runAlone(join(bin, 'kube-proxyctl'), ['--help']),
      ]);
      const [proxy, alias, ctl] = outcomes;
      for (const outcome of outcomes) assert.deepEqual([outcome.code, outcome.stderr], [0, '']);
      assert.match(proxy.stdout, /^Kubernetes v1\.\d+\.\d+\n$/);
      assert.equal(alias.stdout, proxy.stdout);
      assert.match(ctl.stdout, /^Usage:\n {2}kube-proxyctl /m);
    });
  }

  test('the bundles know their version and the commit that they were built from', async () => {
    const { version, commit, treeState } = builtProduct(resolve(dist, '..'));
    const bin = join(local, 'node_modules/.bin');
    const raw = await run(join(bin, 'kube-proxy'), ['--version=raw']);
    assert.match(raw.stdout, new RegExp(`GitCommit:"${commit}", GitTreeState:"${treeState}"`));
    assert.match(raw.stdout, new RegExp(`Product:"kube-proxy-ts ${version}"`));
    const ctl = await run(join(bin, 'kube-proxyctl'), ['version', '--output=json']);
    assert.deepEqual(JSON.parse(ctl.stdout).client.product, { version, commit, treeState });
  });

  test('npx finds the command by the name of the package', async () => {
    const { stdout, stderr, code } = await run('npx', ['--offline', 'kube-proxy-ts', '--version'], {
      cwd: local,
    });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Kubernetes v1\./);
  });

  test('the package serves the example manifests for any user', async () => {
    const command = join(local, 'node_modules/.bin/kube-proxy-ts');
    await assertServes([command], examples);
  });

  test('the directory of the bundles runs by itself, elsewhere, with any Node of the right version', async () => {
    assert.deepEqual(readdirSync(join(dist, 'node_modules')).sort(), ['@koromix', 'koffi']);
    // No directory above the copy has a node_modules.
    const copy = join(installation.directory, 'copied');
    await run('cp', ['-r', dist, copy]);
    await run('chmod', ['-R', 'a+rX', copy]);
    assert.ok(!existsSync(join(installation.directory, 'node_modules')));
    await assertServes([join(local, 'node_modules/.bin/node'), join(copy, 'kube-proxy.js')], examples);
  });
});

/** Runs the proxy in userspace mode without privileges, with web servers as pods, until one answers a request. */
async function assertServes([command = '', ...args]: readonly string[], manifests: string): Promise<void> {
  const flags = [`--manifests=${manifests}`, '--proxy-mode=userspace', '--hostname-override=node-1'];
  const child = spawn(command, [...args, ...flags], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: '/usr/bin:/bin' },
  });
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
    await assertAnswered('127.0.0.1:8080', proxy);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}
