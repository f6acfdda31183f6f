import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Size } from '../report/measurement.ts';
import type { WrittenCluster } from './cluster.ts';
import type { HollowReport, Order } from './hollow.ts';
import { isQuiet, serverCpuOf, total } from './programs.ts';
import { CountingRelay } from './relay.ts';
import type { ServerProcess } from './server.ts';

export interface Load {
  readonly nodes: number;
  readonly size: Size;
  readonly updates: number;
  readonly updatesPerSecond: number;
}

export interface ManyCosts {
  /** All nodes start within ten seconds. */
  readonly start: StormCosts;
  /** All connections break; the server goes on. */
  readonly cut: StormCosts;
  /** The server ends and starts again. Undefined if it cannot do that. */
  readonly restart: StormCosts | undefined;
  /** Of one update, for one node. */
  readonly update: { readonly serverCpuMs: number; readonly ownCpuMs: number; readonly bytes: number };
  readonly residentMB: number;
}

/** All nodes connect at about the same time. */
export interface StormCosts
  extends Pick<HollowReport, 'lists' | 'mostListsOfANode' | 'mostListsInASecond' | 'resumed'> {
  /** Until all watches are connected. */
  readonly seconds: number;
  readonly serverCpuMs: number;
  readonly bytes: number;
}

const startMs = 10_000;
const patienceMs = 120_000;
/** The CPU time of a restart is measured until so long after it. */
const restartWindowMs = 15_000;
/** The address of the relay; the server listens at another one. */
const relayIP = '127.0.0.2';

/** Nodes that only watch, in a process of their own. */
class HollowNodes {
  readonly #child: ChildProcess = fork(resolve(import.meta.dirname, 'hollow.ts'));

  send(order: Order): void {
    this.#child.send(order);
  }

  async report(): Promise<HollowReport> {
    const answer = once(this.#child, 'message');
    this.send('report');
    const [report] = (await answer) as [HollowReport];
    return report;
  }

  /** Waits until all watches of so many nodes are connected. */
  async connected(count: number): Promise<HollowReport> {
    for (let waited = 0; waited < patienceMs; waited += 100) {
      const report = await this.report();
      if (report.connected === count) return report;
      await sleep(100);
    }
    throw new Error(`the watches of ${count} nodes are not all connected after two minutes`);
  }

  async close(): Promise<void> {
    this.#child.kill();
    await once(this.#child, 'close');
  }
}

/** Starts many nodes that only watch, changes slices, breaks their connections, and restarts the server. */
export async function measureMany(
  load: Load,
  server: ServerProcess,
  cluster: WrittenCluster,
): Promise<ManyCosts> {
  const restartAlone = await restartCpu(server, async () => {});
  const updatesAlone = await serverCpuOf(server, () => writeUpdates(load, server, cluster));
  const url = new URL(server.client.url);
  const relay = await CountingRelay.open(relayIP, url);
  url.hostname = relayIP;
  const hollow = new HollowNodes();
  const { token } = server.client;
  const { nodes } = load;

  async function storm(serverCpu: (wait: () => Promise<void>) => Promise<number>): Promise<StormCosts> {
    const [begun, received] = [performance.now(), relay.received];
    let seconds = 0;
    hollow.send('reset');
    const serverCpuMs = await serverCpu(async () => {
      await hollow.connected(nodes);
      seconds = (performance.now() - begun) / 1000;
    });
    const { lists, mostListsOfANode, mostListsInASecond, resumed } = await hollow.report();
    const bytes = relay.received - received;
    return { seconds, serverCpuMs, bytes, lists, mostListsOfANode, mostListsInASecond, resumed };
  }

  try {
    const start = await storm((wait) =>
      serverCpuOf(server, async () => {
        hollow.send({ url: url.href, token, nodes, withinMs: startMs });
        await wait();
      }),
    );
    const cut = await storm((wait) =>
      serverCpuOf(server, async () => {
        relay.cut();
        // The nodes must notice it, or they count as connected.
        await sleep(1000);
        await wait();
      }),
    );
    // After the cut no watch is compressed, as some minutes after a start.
    const before = { received: relay.received, ...(await hollow.report()) };
    const updateCpu = await serverCpuOf(server, async () => {
      await writeUpdates(load, server, cluster);
      await isQuiet(relay);
    });
    const after = await hollow.report();
    const perUpdate = (cost: number) => cost / nodes / load.updates;
    const update = {
      serverCpuMs: perUpdate(updateCpu - updatesAlone),
      ownCpuMs: perUpdate(after.cpuMs - before.cpuMs),
      bytes: perUpdate(relay.received - before.received),
    };
    const restart =
      server.restart && (await storm(async (wait) => (await restartCpu(server, wait)) - restartAlone));
    return { start, cut, restart, update, residentMB: after.residentMB };
  } finally {
    await hollow.close();
    await relay.close();
  }
}

/** Restarts the server. Returns the CPU time of the new one until some time after it. */
async function restartCpu(server: ServerProcess, afterwards: () => Promise<void>): Promise<number> {
  if (server.restart === undefined) return 0;
  await server.restart();
  const begun = performance.now();
  await afterwards();
  await sleep(Math.max(0, restartWindowMs - (performance.now() - begun)));
  return total(server.cpu());
}

function writeUpdates(load: Load, server: ServerProcess, cluster: WrittenCluster): Promise<void> {
  return server.client.writeSteadily(load.updates, load.updatesPerSecond, (i) => cluster.update(i));
}
