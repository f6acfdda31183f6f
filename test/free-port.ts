import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below all ports that the kernel chooses by itself: another process may get one of those at any time. */
const LOWEST = 12_000;
/** Test files run in parallel, so every process has its own range. */
const PER_PROCESS = 100;
const PROCESSES = 150;

const first = LOWEST + (process.pid % PROCESSES) * PER_PROCESS;
let given = 0;

/** Returns a free port outside the range that the kernel assigns by itself; each call returns another one. */
export async function freePort(ip = '127.0.0.1'): Promise<number> {
  while (given < PER_PROCESS) {
    const port = first + given++;
    if (await isFree(port, ip)) return port;
  }
  throw new Error(`no port is left from ${first} on`);
}

/** Whether the port is free for TCP and for UDP. */
async function isFree(port: number, ip: string): Promise<boolean> {
  const server = createServer().listen(port, ip);
  const datagrams = createSocket(ip.includes(':') ? 'udp6' : 'udp4').bind(port, ip);
  const held = await Promise.allSettled([once(server, 'listening'), once(datagrams, 'listening')]);
  await Promise.all(
    [server, datagrams].map((each) => new Promise<void>((settle) => each.close(() => settle()))),
  );
  return held.every(({ status }) => status === 'fulfilled');
}
