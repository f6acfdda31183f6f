import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientResult, ClientTask } from './client.ts';

/** A running program and the port that it serves. */
export interface Served {
  readonly port: number;
  /** Undefined if it is not a separate process. */
  readonly pid: number | undefined;
  close(): void;
}

const script = (name: string): string => new URL(`./${name}.ts`, import.meta.url).pathname;

/**
 * Starts one of the scripts beside this one, and waits for the port that it prints. `through` is a command that runs the
 * one that follows it.
 */
export async function startScript(
  name: string,
  args: readonly string[] = [],
  through: readonly string[] = [],
): Promise<Served> {
  const child = spawnScript(name, args, through);
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { port: Number(line), pid: child.pid, close: () => void child.kill() };
}

/** Starts haproxy in TCP mode in front of a server; returns undefined if it is not installed. */
export async function startHaproxy(server: number): Promise<Served | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  const port = await freePort();
  const config = join(directory, 'haproxy.cfg');
  writeFileSync(config, haproxyConfig(port, server));
  const child = spawn('haproxy', ['-q', '-db', '-f', config], { stdio: 'inherit' });
  const isMissing = await Promise.race([
    once(child, 'error').then(() => true),
    isListening(port, child).then(() => false),
  ]);
  rmSync(directory, { recursive: true });
  return isMissing ? undefined : { port, pid: child.pid, close: () => void child.kill() };
}

/** Runs a client to its end. */
export async function runClient(task: ClientTask, through: readonly string[] = []): Promise<ClientResult> {
  const child = spawnScript('client', [JSON.stringify(task)], through);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child, 'close');
  return JSON.parse(output) as ClientResult;
}

function spawnScript(name: string, args: readonly string[], through: readonly string[]) {
  const [program = '', ...rest] = [...through, process.execPath, '--no-warnings', script(name), ...args];
  return spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
}

/** CPU seconds that a process has used on all cores together. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ticksPerSecond = 100;
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Resident memory in MB. */
export function residentMB(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return (pages * 4096) / 1e6;
}

function haproxyConfig(port: number, server: number): string {
  return [
    'global',
    '  maxconn 4000',
    'defaults',
    '  mode tcp',
    '  option splice-auto',
    '  timeout connect 5s',
    '  timeout client 60s',
    '  timeout server 60s',
    'frontend bench',
    `  bind 127.0.0.1:${port}`,
    '  default_backend bench',
    'backend bench',
    `  server one 127.0.0.1:${server}`,
    '',
  ].join('\n');
}

async function isListening(port: number, child: ChildProcess): Promise<void> {
  for (let i = 0; i < 200 && child.exitCode === null; i++) {
    const socket = connect(port, '127.0.0.1');
    const isUp = await Promise.race([
      once(socket, 'connect').then(
        () => true,
        () => false,
      ),
    ]);
    socket.destroy();
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
