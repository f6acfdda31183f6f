/**
 * A kubectl for tests. It answers `get pods` and `port-forward` from a file of type FakeCluster, which the environment
 * variable FAKE_CLUSTER names, and records each call in a file beside it.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import type { FakeCluster } from './fake-cluster.ts';

const path = process.env.FAKE_CLUSTER ?? '';
const cluster = JSON.parse(readFileSync(path, 'utf8')) as FakeCluster;
const args = process.argv.slice(2);
appendFileSync(`${path}.calls`, `${JSON.stringify({ pid: process.pid, args })}\n`);

function fail(text: string): never {
  process.stderr.write(`Warning: something that is no error\n${text}\n`);
  process.exit(1);
}

function getPods(): void {
  if (cluster.denied === 'list') {
    fail(
      'Error from server (Forbidden): pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "kube-system"',
    );
  }
  const items = cluster.pods.map(({ name, phase, isTerminating }) => ({
    metadata: { name, ...(isTerminating && { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
    spec: { nodeName: 'node-a' },
    status: { phase: phase ?? 'Running' },
  }));
  process.stdout.write(JSON.stringify({ kind: 'List', items }));
}

function forward(): void {
  if (cluster.denied === 'portforward') {
    fail(
      'error: error upgrading connection: pods "kube-proxy-1" is forbidden: User "eve" cannot create resource "pods/portforward" in API group "" in the namespace "kube-system"',
    );
  }
  const remote = Number(args.find((arg) => arg.startsWith(':'))?.slice(1));
  const server = createServer((socket) => {
    process.stdout.write('Handling connection\n');
    if (isBroken()) {
      socket.destroy();
      setTimeout(() => fail('error: lost connection to pod'), 20);
    } else join(socket, connect(remote, '127.0.0.1').on('error', refuse));
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (typeof address !== 'object' || !address) throw new Error('no address');
    process.stdout.write(`Forwarding from 127.0.0.1:${address.port} -> ${remote}\n`);
  });
}

/** What kubectl v1.37 writes when the kubelet cannot connect to the port. */
function refuse(): void {
  const words =
    'failed to connect to localhost:1 inside namespace, IPv4: dial tcp4 127.0.0.1:1: connect: connection refused';
  fail(
    `E1116 13:18:27 portforward.go:549] "An error occurred forwarding" err="${words}"\nerror: lost connection to pod`,
  );
}

/** Whether the connection breaks. A file beside the cluster breaks one connection, and is removed. */
function isBroken(): boolean {
  if (!existsSync(`${path}.break`)) return false;
  rmSync(`${path}.break`);
  return true;
}

function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
  }
}

if (args[0] === 'get') getPods();
else if (args[0] === 'port-forward') forward();
else fail(`error: unknown command ${args[0]}`);
