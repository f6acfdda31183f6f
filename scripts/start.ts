/**
 * `npm start`: the proxy at work with no cluster. In a network namespace of its own it gives a node and three pods an
 * address each, starts the real program on examples/shop, sends requests to the service addresses and shows who
 * answers. Edit the manifests meanwhile and watch the traffic move. Everything is gone after Ctrl-C.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createServer, get } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const root = resolve(import.meta.dirname, '..');
const manifests = join(root, 'examples/shop');
const node = '192.0.2.1';
const pods = ['192.0.2.11', '192.0.2.12', '192.0.2.13'];
const podPort = 8080;
const targets = [
  ['web, cluster IP', 'http://10.96.0.10/'],
  ['cart, cluster IP', 'http://10.96.0.20/'],
  ['cart, node port', `http://${node}:30080/`],
] as const;
const requestsPerRound = 6;
const patienceMs = 500;

/** Leaves settings of the whole machine alone: only the demonstration's own namespace is touched. */
const flags = [
  `--manifests=${manifests}`,
  '--proxy-mode=nftables',
  `--bind-address=${node}`,
  '--nodeport-addresses=primary',
  '--conntrack-max-per-core=0',
  '--conntrack-tcp-timeout-established=0',
  '--conntrack-tcp-timeout-close-wait=0',
];

async function main(): Promise<void> {
  if (process.argv[2] !== 'inside') return enterNamespace();
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  for (const address of [node, ...pods]) execFileSync('ip', ['addr', 'add', `${address}/32`, 'dev', 'lo']);
  execFileSync('ip', ['route', 'add', 'default', 'dev', 'lo', 'src', node]);
  for (const pod of pods) createServer((_request, response) => response.end(pod)).listen(podPort, pod);
  const proxy = spawn(join(root, 'bin/kube-proxy'), flags, { stdio: ['ignore', 'inherit', 'inherit'] });
  endTogether(proxy);
  console.log(`kube-proxy runs on ${manifests}; edit the files there. Ctrl-C ends it.\n`);
  while (!pods.includes(await ask(targets[0][1]))) await sleep(100);
  for (;;) {
    for (const [name, url] of targets)
      console.log(`${name.padEnd(18)} ${url.padEnd(24)} ${await round(url)}`);
    console.log('');
    await sleep(2000);
  }
}

function enterNamespace(): void {
  const args = ['-n', '--', process.execPath, import.meta.filename, 'inside'];
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0 && process.getuid?.() !== 0) {
    console.error('npm start needs root on Linux: it makes a network namespace and programs nftables in it.');
  }
  process.exit(status ?? 0);
}

/** The demonstration ends with the proxy, and the proxy with the demonstration. */
function endTogether(proxy: ChildProcess): void {
  proxy.on('exit', (code) => {
    console.error(`kube-proxy ended with code ${code}`);
    process.exit(1);
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      proxy.removeAllListeners('exit');
      proxy.kill();
      process.exit(0);
    });
  }
}

/** Who answered a few new connections, and how often. */
async function round(url: string): Promise<string> {
  const answers = new Map<string, number>();
  for (let i = 0; i < requestsPerRound; i++) {
    const answer = await ask(url);
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  const counted = [...answers].sort(([a], [b]) => (a < b ? -1 : 1));
  return counted.map(([answer, count]) => `${answer} ×${count}`).join('  ');
}

function ask(url: string): Promise<string> {
  return new Promise((settle) => {
    const request = get(url, { agent: false, timeout: patienceMs }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => settle(body));
    });
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', (error: NodeJS.ErrnoException) => settle(error.code ?? error.message));
  });
}

await main();
