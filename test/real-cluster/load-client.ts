/**
 * Makes connections to the given targets, one after the other in turn, and counts those that fail. Uses every source
 * port once: a port that comes again may meet the kernel's record of its old connection, and then the failure says
 * nothing about a proxy. Runs until its standard input closes, then prints the outcome as JSON. Fails when it has used
 * all ports before.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode, messageOf } from '../../src/lib/thrown.ts';

export interface LoadOrder {
  /** Addresses and ports of one web service. */
  readonly targets: readonly { readonly host: string; readonly port: number }[];
  readonly perSecond: number;
  /** The source port of the first connection: where the last run ended. */
  readonly firstPort: number;
}

export interface LoadOutcome {
  readonly connections: number;
  readonly slowestMs: number;
  /** One line for each failed connection. */
  readonly failures: readonly string[];
}

/** What a client prints. */
export interface ClientOutcome extends LoadOutcome {
  /** How many source ports it went through. */
  readonly portsUsed: number;
}

type Target = LoadOrder['targets'][number];

/** Below the ports that the kernel chooses, and below node ports. They last for 16 minutes. */
export const sourcePorts = { first: 10_000, count: 20_000 };
const patienceMs = 10_000;
const request = 'GET /hostname HTTP/1.0\r\n\r\n';

async function main({ targets, perSecond, firstPort }: LoadOrder): Promise<ClientOutcome> {
  let isEnough = false;
  process.stdin.on('end', () => {
    isEnough = true;
  });
  process.stdin.resume();
  const failures: string[] = [];
  const open = new Set<Promise<void>>();
  let [connections, slowestMs, portsUsed] = [0, 0, 0];
  for (; !isEnough; portsUsed++) {
    if (portsUsed === sourcePorts.count) throw new Error('all source ports are used');
    const port = sourcePortAt(firstPort, portsUsed);
    const target = targets[port % targets.length];
    if (!target) break;
    const begun = performance.now();
    const done = ask(target, port).then(
      () => {
        connections++;
        slowestMs = Math.max(slowestMs, Math.round(performance.now() - begun));
      },
      (error: unknown) => {
        // Another program has the port: no connection was tried.
        if (hasCode(error, 'EADDRINUSE')) return;
        connections++;
        failures.push(
          `${new Date().toISOString()} ${port} → ${target.host}:${target.port}: ${messageOf(error)}`,
        );
      },
    );
    open.add(done);
    void done.finally(() => open.delete(done));
    await sleep(1000 / perSecond);
  }
  await Promise.all(open);
  return { connections, slowestMs, failures, portsUsed };
}

/** The source port `steps` behind another one; the first follows the last. */
export function sourcePortAt(port: number, steps: number): number {
  const { first, count } = sourcePorts;
  return first + ((port - first + steps) % count);
}

/** Resolves when the whole answer has arrived. */
function ask({ host, port }: Target, localPort: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, localPort });
    let answer = '';
    const timer = setTimeout(() => socket.destroy(new Error(`no answer in ${patienceMs} ms`)), patienceMs);
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      if (/^HTTP\/1\.\d 200 .*\r\n\r\n./s.test(answer)) resolve();
      else reject(new Error(`closed after ${JSON.stringify(answer.slice(0, 60))}`));
    });
    socket.on('connect', () => socket.write(request));
  });
}

if (import.meta.main) {
  const outcome = await main(JSON.parse(process.argv[2] ?? '') as LoadOrder);
  process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(0));
}
