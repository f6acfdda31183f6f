import { setTimeout as sleep } from 'node:timers/promises';
import { families } from '../../src/model/ip.ts';
import { addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import type { Landscape } from '../contract/landscape.ts';
import { nodePortOf } from '../contract/objects.ts';
import { Peer } from '../contract/peer.ts';
import type { ServiceSpec } from '../contract/story.ts';
import { eventually } from '../eventually.ts';
import { Dice } from './dice.ts';
import { Ledger } from './ledger.ts';
import { Model } from './model/model.ts';
import { patience } from './model/tolerances.ts';
import { costText } from './report.ts';
import { Timeline } from './timeline.ts';
import { Traffic } from './traffic.ts';

/** A kube-proxy as its supervisor sees it. */
interface Program {
  start(): Promise<void>;
  end(signal: NodeJS.Signals): Promise<void>;
}

const SERVICES = 20;
const spec: ServiceSpec = {
  protocols: ['TCP', 'UDP'],
  nodePort: true,
  external: true,
  loadBalancer: true,
  endpoints: ['A', 'B', 'C', 'D'],
};
const TIMES = 3;
const PAUSE_MS = 1_000;
/** Two sync periods: a program that has not written its rules again by then waits for something else. */
const REPAIR_MS = 60_000;

/** Prints what each kind of fault costs with unchanging services, with this program or with another kube-proxy. */
export async function measureCosts(
  mode: string,
  landscape: Landscape,
  print: (line: string) => void,
  peer?: string,
): Promise<void> {
  const cluster = await Cluster.open(mode, families, landscape);
  const program = peer === undefined ? own(cluster) : other(new Peer(peer, cluster));
  const site = new CostSite(cluster, program, print);
  try {
    await site.measure();
  } finally {
    await site.close();
  }
}

function own(cluster: Cluster): Program {
  return {
    start: () => cluster.start(),
    end: async (signal) => {
      const { program } = cluster;
      program.signal(signal);
      await program.exited;
    },
  };
}

function other(peer: Peer): Program {
  return { start: () => peer.start(), end: (signal) => peer.stop(signal) };
}

/** Services that do not change, traffic to them, and faults one after the other. */
class CostSite {
  readonly #cluster: Cluster;
  readonly #program: Program;
  readonly #print: (line: string) => void;
  readonly #ledger: Ledger;
  readonly #model: Model;
  readonly #traffic: Traffic;
  readonly #services: readonly number[];

  constructor(cluster: Cluster, program: Program, print: (line: string) => void) {
    this.#cluster = cluster;
    this.#program = program;
    this.#print = print;
    this.#model = new Model(cluster.mode, () => performance.now());
    this.#ledger = new Ledger(this.#model, new Timeline());
    this.#services = Array.from({ length: SERVICES }, () => cluster.number(spec).n);
    this.#traffic = new Traffic(cluster.landscape, this.#model, this.#ledger, new Dice(1), this.#services);
  }

  async measure(): Promise<void> {
    this.#cluster.prepare();
    for (const n of this.#services) {
      this.#model.setService(n, spec);
      this.#cluster.put({ n, spec });
    }
    await this.#program.start();
    await this.#allAnswer();
    this.#model.settleServices(performance.now());
    this.#traffic.start();
    const { api } = this.#cluster;
    await this.#repeat('kill -9, then start', async () => {
      await this.#program.end('SIGKILL');
      await this.#program.start();
    });
    await this.#repeat('SIGTERM, then start', async () => {
      await this.#program.end('SIGTERM');
      await this.#program.start();
    });
    await this.#repeat('all watches cut', async () => {
      for (const watch of api.watches()) watch.drop();
      await this.#cluster.settled({ withinMs: patience.eventMs });
    });
    await this.#repeat('all watches end with 410', async () => {
      api.store.compact();
      for (const watch of api.watches()) watch.error(410, 'Expired', 'too old');
      await this.#cluster.settled({ withinMs: patience.eventMs });
    });
    const flushed = this.#repeat('all rules flushed', async () => {
      await this.#cluster.wipe();
      await this.#allAnswer();
    });
    await flushed.catch((error: Error) => this.#print(`all rules flushed, not repaired: ${error.message}`));
    // Also the connections that are under way count.
    await this.#traffic.stop();
    for (const [kind, cost] of this.#ledger.costs) this.#print(costText(kind, cost));
  }

  async close(): Promise<void> {
    await this.#traffic.stop();
    await this.#program.end('SIGKILL');
    await this.#cluster.wipe();
    await this.#cluster.close();
  }

  /** Makes a fault happen several times; failed connections count, whatever their cause. */
  async #repeat(kind: string, fault: () => Promise<void>): Promise<void> {
    for (let i = 0; i < TIMES; i++) {
      await sleep(PAUSE_MS);
      await this.#ledger.during(kind, fault);
    }
  }

  /** Waits until every service answers at its cluster IP and node port, in both families. */
  async #allAnswer(): Promise<void> {
    const [pod, outside] = [this.#cluster.landscape.host('pod'), this.#cluster.landscape.host('outside')];
    for (const family of families) {
      const book = addressBooks[family];
      for (const n of this.#services) {
        const questions = [
          { host: pod, address: book.service(n).clusterIP, port: 80 },
          { host: outside, address: book.node, port: nodePortOf(n), source: book.clients.client },
        ];
        for (const { host, ...question } of questions) {
          const isAnswered = async () => {
            const outcome = await host.ask({ ...question, timeoutMs: 200 });
            return outcome.kind === 'answered' && outcome.by !== 'world';
          };
          await eventually(`service-${n} answers`, isAnswered, { withinMs: REPAIR_MS });
        }
      }
    }
  }
}
