import assert from 'node:assert/strict';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { eventuallyEqual } from '../eventually.ts';
import { Installation, NpmStart, namedNetworks, processes } from './npm-start.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const ROOT = 0;
const NOBODY = 65_534;
/** A folder that npm itself makes, if its Node has a compile cache. */
const cacheOfNpm = 'node-compile-cache';
const ownNetwork = /in a network namespace of its own/;
const oldKernel =
  'echo 5.4.0 > "$TMPDIR/osrelease" && mount --bind "$TMPDIR/osrelease" /proc/sys/kernel/osrelease';

/** The state of the machine that `npm start` must not change. */
function machine(): string {
  return [
    run('nft', 'list', 'ruleset'),
    run('ip', 'address'),
    run('ip', 'route', 'show', 'table', 'all'),
  ].join('\n');
}

/** Removes two of the three pods of the front end. */
function removePods(manifests: string): void {
  const file = join(manifests, 'web.yaml');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/^.*127\.0\.1\.1[13].*\n/gm, ''));
}

describe('npm start', { skip: skip ?? false }, () => {
  let installation: Installation;
  let installedFiles: string[];
  let machineBefore: string;
  const started: NpmStart[] = [];
  /** Open files, so that the kernel does not give the number of a namespace that is gone to one of another test. */
  const heldNetworks: number[] = [];

  function start(uid: number, through: readonly string[] = []): NpmStart {
    const demonstration = new NpmStart(installation, uid, through);
    started.push(demonstration);
    return demonstration;
  }

  async function assertNothingLeft(demonstration: NpmStart, networks: ReadonlySet<string>): Promise<void> {
    // When npm ends first, the other processes need a moment to notice.
    const processesLeft = () => demonstration.processes();
    await eventuallyEqual('the end of all processes', processesLeft, [], { withinMs: 60_000, everyMs: 20 });
    const networksLeft = [...processes().map(({ network }) => network), ...namedNetworks()];
    assert.deepEqual(
      networksLeft.filter((network) => networks.has(network)),
      [],
    );
    assert.deepEqual(
      readdirSync(join(demonstration.folder, 'tmp')).filter((name) => name !== cacheOfNpm),
      [],
    );
    assert.deepEqual(readdirSync(demonstration.manifests).sort(), ['cart.yaml', 'node.yaml', 'web.yaml']);
    assert.deepEqual(installation.files(), installedFiles);
    assert.equal(machine(), machineBefore);
  }

  /** Namespaces of the demonstration's processes that this process is not in. */
  function networksOf(demonstration: NpmStart): Set<string> {
    for (const { pid } of demonstration.processes()) {
      try {
        heldNetworks.push(openSync(`/proc/${pid}/ns/net`, 'r'));
      } catch {
        // A program that the proxy ran has just ended.
      }
    }
    const own = processes().find(({ pid }) => pid === process.pid)?.network;
    const all = new Set(demonstration.processes().map(({ network }) => network));
    all.delete(own ?? '');
    return all;
  }

  /** The page that it names is there, and answers for its proxy. */
  async function showsPage(demonstration: NpmStart): Promise<void> {
    await demonstration.shows(/^Its page for a browser: http/m);
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+\//.exec(demonstration.output) ?? [];
    assert.match(await (await fetch(url)).text(), /<title>kube-proxy<\/title>/);
    const status: StatusReport = JSON.parse(await (await fetch(`${url}debug/kube-proxy/status`)).text());
    assert.equal(status.nodeName, 'node-1');
  }

  /** It runs, a manifest is edited, the traffic moves, Ctrl-C ends it. */
  async function followsAnEdit(demonstration: NpmStart, web: string, nodePort: string): Promise<void> {
    await demonstration.shows(new RegExp(`web, cluster IP +${web} .*127\\.0\\.1\\.1[13] ×`));
    await demonstration.shows(new RegExp(`cart, node port +${nodePort} +127\\.0\\.1\\.1[23] ×6\\n`));
    await showsPage(demonstration);
    const networks = networksOf(demonstration);
    assert.equal(networks.size, ownNetwork.test(demonstration.output) ? 1 : 0);
    const before = demonstration.output.length;
    removePods(demonstration.manifests);
    await demonstration.shows(new RegExp(`web, cluster IP +${web} +127\\.0\\.1\\.12 ×6\\n`), before);
    demonstration.signal('SIGINT', 'all');
    assert.equal(await demonstration.ended(), 0);
    assert.doesNotMatch(demonstration.output, /ended by itself| {4}at /);
    await assertNothingLeft(demonstration, networks);
  }

  before(() => {
    installation = new Installation();
    installedFiles = installation.files();
    machineBefore = machine();
  });
  afterEach(() => {
    for (const demonstration of started.splice(0)) demonstration.kill();
    for (const file of heldNetworks.splice(0)) closeSync(file);
  });
  after(() => installation.remove());

  it('runs nftables mode in a namespace of its own as root', async () => {
    const demonstration = start(ROOT);
    await demonstration.shows(/runs in nftables mode, in a network namespace of its own/);
    await followsAnEdit(demonstration, '10.96.0.10:8080', '192.0.2.1:30080');
  });

  it('runs userspace mode at loopback as an unprivileged user', async () => {
    const demonstration = start(NOBODY);
    await demonstration.shows(/runs in userspace mode, at loopback .*: not running as root/);
    await followsAnEdit(demonstration, '127.0.0.1:8080', '127.0.0.1:30080');
  });

  it('as root that cannot make a namespace, runs userspace mode at loopback and writes no rule', async () => {
    const demonstration = start(ROOT, ['setpriv', '--bounding-set=-sys_admin']);
    await demonstration.shows(/runs in userspace mode, at loopback .*: no network namespace can be made/);
    await demonstration.shows(/web, cluster IP/);
    assert.equal(machine(), machineBefore);
    await followsAnEdit(demonstration, '127.0.0.1:8080', '127.0.0.1:30080');
  });

  it('runs userspace mode in a namespace of its own as root on a kernel that is too old', async () => {
    const script = `${oldKernel} && rm "$TMPDIR/osrelease" && exec "$@"`;
    const demonstration = start(ROOT, ['unshare', '--mount', 'sh', '-c', script, 'sh']);
    await demonstration.shows(/runs in userspace mode, in a network namespace .* requires kernel 5\.13/);
    await followsAnEdit(demonstration, '10.96.0.10:8080', '192.0.2.1:30080');
  });

  for (const [title, signal, to] of [
    ['npm gets SIGTERM', 'SIGTERM', 'npm'],
    ['the terminal is closed', 'SIGHUP', 'all'],
    ['npm is killed', 'SIGKILL', 'npm'],
  ] as const) {
    for (const uid of [ROOT, NOBODY]) {
      it(`ends when ${title}, as user ${uid}`, async () => {
        const demonstration = start(uid);
        await demonstration.shows(/web, cluster IP .* ×/);
        const networks = networksOf(demonstration);
        demonstration.signal(signal, to);
        await demonstration.ended();
        await assertNothingLeft(demonstration, networks);
      });
    }
  }

  for (const uid of [ROOT, NOBODY]) {
    it(`leaves no proxy behind when it is killed itself, as user ${uid}`, async () => {
      const demonstration = start(uid);
      await demonstration.shows(/web, cluster IP .* ×/);
      const networks = networksOf(demonstration);
      const own = demonstration
        .processes()
        .find(({ command }) => command.includes('scripts/start.ts') && !command.startsWith('npm'));
      assert.ok(own);
      process.kill(own.pid, 'SIGKILL');
      await demonstration.ended();
      await assertNothingLeft(demonstration, networks);
    });
  }

  it('ends, and says so, when the proxy dies', async () => {
    const demonstration = start(ROOT);
    await demonstration.shows(/web, cluster IP .* ×/);
    const networks = networksOf(demonstration);
    const proxy = demonstration.processes().find(({ command }) => command.includes('--proxy-mode='));
    assert.ok(proxy);
    process.kill(proxy.pid, 'SIGKILL');
    assert.equal(await demonstration.ended(), 1);
    await demonstration.shows(/kube-proxy ended by itself \(SIGKILL\)/);
    await assertNothingLeft(demonstration, networks);
  });
});
