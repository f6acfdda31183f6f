import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ConnectionLoad {
  /** Connections that were made and closed again, and others that were not answered in time. */
  readonly connections: number;
  readonly failed: number;
  readonly perSecond: number;
  /** CPU time of this process, with the kernel's work for it: both ends of each connection. */
  readonly cpuMs: number;
}

const tickMs = 2;
/** Beyond this many, the machine is too slow for the rate. */
const mostAtOnce = 1_000;
const patienceMs = 3_000;

/** Makes connections to port 80 of an address at a steady rate, each closed as soon as the server ends it. */
export async function makeConnections(
  ip: string,
  perSecond: number,
  seconds: number,
): Promise<ConnectionLoad> {
  let open = 0;
  let done = 0;
  let failed = 0;
  const one = () => {
    open++;
    let hasFailed = false;
    const fail = () => {
      hasFailed = true;
      socket.destroy();
    };
    const socket = connect({ host: ip, port: 80 });
    socket.setTimeout(patienceMs, fail);
    socket.on('error', fail).on('close', () => {
      open--;
      if (hasFailed) failed++;
      else done++;
    });
    socket.resume();
  };
  const cpu = process.cpuUsage();
  const begun = performance.now();
  let started = 0;
  for (;;) {
    const elapsed = performance.now() - begun;
    if (elapsed >= seconds * 1000) break;
    for (const due = (elapsed * perSecond) / 1000; started < due && open < mostAtOnce; started++) one();
    await sleep(tickMs);
  }
  while (open > 0) await sleep(tickMs);
  const { user, system } = process.cpuUsage(cpu);
  const elapsed = (performance.now() - begun) / 1000;
  return { connections: done, failed, perSecond: done / elapsed, cpuMs: (user + system) / 1000 };
}
