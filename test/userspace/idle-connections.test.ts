import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, before, test } from 'node:test';
import { inNamespace } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';
import { nodeIPs, prepareNode } from './node-under-test.ts';
import { Cleanups, echoAs, type Peer, talk, tcpPeer } from './peers.ts';
import { type RunningProgram, startProgram, writeManifests } from './program-under-test.ts';

const cleanups = new Cleanups();
const wanted = 10_000;
/** Share of the proxy's connection limit to use; the rest of the test needs some, too. */
const share = 0.98;
const idleIPs = ['10.96.1.1', '10.96.1.2', '10.96.1.3', '10.96.1.4'];
const other: Peer = { ip: '10.96.0.1', port: 80 };
/** Measured 1.5 KiB; more means that something grows that should not. */
const maxBytesPerConnection = 6 * 1024;
/** Opening and checking thousands of connections takes time. */
const patience = { withinMs: 120_000 };

/** A process of crowd.ts, with the numbers that it has printed. */
class Crowd {
  readonly printed: number[] = [];
  /** Which connections failed, and why. */
  failures = '';
  readonly #child: ChildProcess;
  readonly ended: Promise<void>;

  constructor(...args: readonly string[]) {
    const script = new URL('./crowd.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, ['--no-warnings', script, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.printed.push(...text.trim().split('\n').map(Number));
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.failures += text;
    });
    this.#child = child;
    this.ended = new Promise((resolve) => child.on('close', () => resolve()));
    cleanups.add(() => this.end());
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
  }
}

/**
 * The program with services of silent endpoints, each in a process of its own, one service that answers, and other
 * services with node ports.
 */
async function start(
  through: readonly string[] = [],
  nodePorts = 0,
): Promise<{ program: RunningProgram; servers: Crowd[] }> {
  const servers = idleIPs.map(() => new Crowd('serve', nodeIPs.IPv4));
  await eventually('the servers listen', () => servers.every(({ printed }) => printed.length > 0), patience);
  const echo = await tcpPeer(cleanups, echoAs('web'), nodeIPs.IPv4);
  const manifests = writeManifests(
    cleanups,
    { name: 'web', clusterIP: other.ip, peer: echo },
    ...idleIPs.map((clusterIP, i) => {
      const peer = { ip: nodeIPs.IPv4, port: servers[i]?.printed[0] ?? 0 };
      return { name: `idle-${i}`, clusterIP, peer };
    }),
    ...Array.from({ length: nodePorts }, (_, i) => {
      return { name: `other-${i}`, clusterIP: `10.96.2.${i + 1}`, nodePort: 30_000 + i, peer: echo };
    }),
  );
  const flags = ['--conntrack-max-per-core=0'];
  const program = await startProgram(cleanups, manifests, /Connection limits/, { through, flags });
  await eventually(
    'the services work',
    async () => (await talk(other, '!').catch(String)) === 'web:!',
    patience,
  );
  return { program, servers };
}

/** Opens `count` connections, spread over the services, with a process for each service. */
function hold(count: number): Crowd[] {
  const each = Math.floor(count / idleIPs.length);
  return idleIPs.map((ip) => new Crowd('hold', String(each), `${ip}:80`));
}

/** Returns the number of connections at the endpoints; the first number that a server prints is its port. */
function atEndpoints(servers: readonly Crowd[]): number {
  return servers.reduce((sum, { printed }) => sum + (printed.slice(1).at(-1) ?? 0), 0);
}

/** Returns the connection limit that the proxy logged. */
function room(program: RunningProgram): number {
  return Number(/"Connection limits".* connections=(\d+)/.exec(program.stderr())?.[1]);
}

/** CAP_SYS_RESOURCE: without it the hard limit on open files applies. */
function mayRaiseLimits(): boolean {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${mask}`) >> 24n) & 1n) === 1n;
}

function openFiles({ pid }: RunningProgram): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function residentBytes({ pid }: RunningProgram): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

async function isAlive(): Promise<void> {
  assert.equal(await talk(other, 'new'), 'web:new');
  const { status } = await fetch(`http://${nodeIPs.IPv4}:10256/healthz`);
  assert.equal(status, 200);
}

inNamespace(import.meta.url, () => {
  before(prepareNode);
  afterEach(() => cleanups.run());

  test(`up to ${wanted} idle connections, as many as the limit on open files allows, do not affect others`, async () => {
    const { program, servers } = await start();
    const most = Math.min(wanted, Math.floor(room(program) * share));
    if (mayRaiseLimits()) assert.equal(most, wanted);
    const count = most - (most % idleIPs.length);
    const [files, bytes] = [openFiles(program), residentBytes(program)];
    const clients = hold(count);
    await eventually('all were tried', () => clients.every(({ printed }) => printed.length > 0), patience);
    assert.equal(
      clients.reduce((sum, { printed }) => sum + (printed[0] ?? 0), 0),
      count,
      `${clients.map(({ failures }) => failures).join('')}${program.stderr()}`,
    );
    await eventually('endpoints have all', () => atEndpoints(servers) === count, patience);
    // At least the files of the connections are closed: some others were open only during the start.
    assert.ok(openFiles(program) >= 2 * count, `${openFiles(program)} open files`);
    const each = (residentBytes(program) - bytes) / count;
    console.log(`measured: ${count} idle connections, ${(each / 1024).toFixed(1)} KiB each in the proxy`);
    assert.ok(each < maxBytesPerConnection, `${each} bytes per connection`);
    await isAlive();
    await Promise.all(clients.map((crowd) => crowd.end()));
    await eventually('endpoints are left', () => atEndpoints(servers) === 0, patience);
    await eventually('all files are closed', () => openFiles(program) < files + 20, patience);
    await isAlive();
  });

  const crowds: [string, number][] = [
    ['', 0],
    [', also where many files listen', 150],
  ];
  for (const [where, nodePorts] of crowds)
    test(`connections above the limit on open files wait, and are served when files are free${where}`, async () => {
      const few = 'ulimit -n 600; exec "$0" "$@"';
      const lock = ['setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource', '--'];
      const { program, servers } = await start([...lock, 'sh', '-c', few], nodePorts);
      assert.ok(room(program) < 300, `room for ${room(program)}`);
      // A node port takes two files, as a connection does: one listens, one holds the port.
      const limit = room(program) - nodePorts;
      const clients = hold(limit * 2);
      await eventually(
        'there is no more room',
        () => /New connections must wait/.test(program.stderr()),
        patience,
      );
      await eventually('it is used', () => atEndpoints(servers) > limit * 0.9, patience);
      assert.ok(atEndpoints(servers) <= limit);
      const { status } = await fetch(`http://${nodeIPs.IPv4}:10256/healthz`);
      assert.equal(status, 200);
      assert.doesNotMatch(program.stderr(), /EMFILE/);
      await Promise.all(clients.map((crowd) => crowd.end()));
      await eventually('endpoints are left', () => atEndpoints(servers) === 0, patience);
      await isAlive();
    });
});
