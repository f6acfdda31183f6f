/**
 * Process of many nodes that only watch: the sources and the state of kube-proxy-ts, without a kernel. Each node has its
 * own connections. It answers the message `report` with a `HollowReport`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fixedCredentials } from '../../src/kube/credentials.ts';
import { createRestClient } from '../../src/kube/http-client.ts';
import type { RestClient } from '../../src/kube/rest-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { type FamilySink, Router } from '../../src/proxier/router.ts';
import { SetAside } from '../../src/proxier/set-aside.ts';
import { kubeSource } from '../../src/sources/kube.ts';
import type { ObjectSource } from '../../src/sources/source.ts';
import { FamilyState } from '../../src/state/family-state.ts';

export interface Start {
  readonly url: string;
  readonly token: string;
  readonly nodes: number;
  /** The nodes start one after the other in this time. */
  readonly withinMs: number;
}

/** `reset` begins new counts of requests and updates. */
export type Order = Start | 'report' | 'reset';

export interface HollowReport {
  readonly nodes: number;
  /** Nodes whose watches are all connected. */
  readonly connected: number;
  /** Requests for all objects of a resource, streamed or the first page. */
  readonly lists: number;
  readonly mostListsOfANode: number;
  /** Requests for watches that go on from a known version. */
  readonly resumed: number;
  readonly updates: number;
  /** The most requests for lists within one second. */
  readonly mostListsInASecond: number;
  readonly cpuMs: number;
  readonly residentMB: number;
}

const resources = ['services', 'endpointSlices', 'nodes', 'serviceCIDRs'] as const;

/** As often as the sync loop does at most. */
const syncMs = 1000;

/** One node that only watches. */
class HollowNode {
  readonly listsAt: number[] = [];
  resumed = 0;
  updates = 0;
  readonly #source: ObjectSource;

  constructor(url: string, token: string, nodeName: string) {
    this.#source = kubeSource({
      client: this.#counted(clientOf(url, token)),
      location: url,
      nodeName,
      // As the program does by default.
      streamsLists: false,
      clock: systemClock,
      logger: silentLogger,
    });
    const aside = new SetAside({ announce: () => {}, logger: silentLogger });
    this.#source.start(resources, new Router([this.#sink(nodeName)], aside, silentLogger));
  }

  get isConnected(): boolean {
    const { watches } = this.#source.status();
    return watches.length === resources.length && watches.every(({ state }) => state === 'connected');
  }

  #counted(client: RestClient): RestClient {
    return {
      request: (request) => client.request(request),
      close: () => client.close(),
      stream: (request) => {
        const { resourceVersion, continue: page } = request.query ?? {};
        if (resourceVersion !== undefined) this.resumed++;
        else if (page === undefined) this.listsAt.push(performance.now());
        return client.stream(request);
      },
    };
  }

  /** Keeps the state, and syncs it as the proxier does, with nothing. */
  #sink(nodeName: string): FamilySink {
    const state = new FamilyState({ family: 'IPv4', nodeName, startTime: Date.now(), onProblem: () => {} });
    setInterval(() => state.acknowledge(state.takeDelta()), syncMs);
    return {
      family: 'IPv4',
      updateService: (previous, object) => {
        this.updates++;
        state.updateService(previous, object);
      },
      updateSlice: (object, removed) => {
        this.updates++;
        state.updateSlice(object, removed);
      },
      setServiceCIDRs: () => {},
      synced: () => {},
    };
  }
}

function clientOf(url: string, token: string): RestClient {
  return createRestClient({
    access: {
      server: new URL(url),
      skipVerify: true,
      disableCompression: false,
      credentials: fixedCredentials({ token }),
      headers: {},
    },
    userAgent: 'kube-proxy/hollow',
    qps: 5,
    burst: 10,
    contentTypes: { accept: '', contentType: 'application/vnd.kubernetes.protobuf' },
    clock: systemClock,
    logger: silentLogger,
  });
}

const nodes: HollowNode[] = [];

async function start({ url, token, nodes: count, withinMs }: Start): Promise<void> {
  for (let i = 0; i < count; i++) {
    nodes.push(new HollowNode(url, token, `node-${i}`));
    await sleep(withinMs / count);
  }
}

function report(): HollowReport {
  const lists = nodes.flatMap(({ listsAt }) => listsAt).sort((a, b) => a - b);
  const sum = (of: (node: HollowNode) => number) => nodes.reduce((total, node) => total + of(node), 0);
  const { user, system } = process.cpuUsage();
  return {
    nodes: nodes.length,
    connected: nodes.filter(({ isConnected }) => isConnected).length,
    lists: lists.length,
    mostListsOfANode: Math.max(0, ...nodes.map(({ listsAt }) => listsAt.length)),
    mostListsInASecond: Math.max(
      0,
      ...lists.map((at, i) => lists.filter((other, j) => j >= i && other < at + 1000).length),
    ),
    resumed: sum((node) => node.resumed),
    updates: sum((node) => node.updates),
    cpuMs: (user + system) / 1000,
    residentMB: process.memoryUsage.rss() / 2 ** 20,
  };
}

/** Counts requests anew. */
function reset(): void {
  for (const node of nodes) {
    node.listsAt.length = 0;
    node.resumed = 0;
    node.updates = 0;
  }
}

process.on('message', (order: Order) => {
  if (order === 'report') process.send?.(report());
  else if (order === 'reset') reset();
  else void start(order);
});
process.once('disconnect', () => process.exit());
