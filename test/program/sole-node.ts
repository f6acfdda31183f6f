import { connect, createServer, type Server, type Socket } from 'node:net';
import { run } from '../cluster/lab/namespace.ts';
import { apiNode } from '../cluster/objects.ts';
import { runInNode } from '../contract/node-commands.ts';
import { eventually, type Patience } from '../eventually.ts';
import { METRICS_URL, sumOfSamples } from './served-pages.ts';
import { Site, type StartedProxy } from './started.ts';

const endpointPort = 8080;
/** Services have addresses in these ranges. */
const ranges = ['10.96.0.0/16', '198.51.100.0/24'];
/** Short, so that repeated attempts see an answer soon. */
const ATTEMPT_MS = 20;
/** For an answer that must arrive, also on a busy machine. */
const PATIENCE_MS = 5_000;

/** A node without neighbours: the namespace of this process, which is also the only endpoint that answers. */
export class SoleNode {
  /** The node's address, where an endpoint of any service may be. */
  static readonly address = '192.0.2.1';
  readonly site: Site;
  readonly #server: Server;
  #proxy: StartedProxy | undefined;

  static async open(): Promise<SoleNode> {
    run('ip', 'addr', 'add', `${SoleNode.address}/32`, 'dev', 'lo');
    for (const range of ranges) run('ip', 'route', 'add', range, 'dev', 'lo');
    const site = await Site.open();
    site.api.put('nodes', apiNode('node-a'));
    return new SoleNode(site);
  }

  private constructor(site: Site) {
    this.site = site;
    // A client that gives up while the answer is on its way resets the connection.
    const answer = (socket: Socket) => void socket.on('error', () => socket.destroy()).end('here');
    this.#server = createServer(answer).listen(endpointPort, SoleNode.address);
  }

  get log(): string {
    return this.#proxy?.stderr ?? '';
  }

  get pid(): number {
    return this.#proxy?.pid ?? 0;
  }

  /** Starts the program in nftables mode. */
  async start(settings: Record<string, unknown> = {}, args: readonly string[] = []): Promise<void> {
    this.#proxy = await this.site.start(this.site.writeConfig({ nftables: settings }), args);
    await this.#proxy.serves(METRICS_URL);
  }

  /** Ends the program that `start` started, and no other one. */
  async kill(): Promise<void> {
    await this.#proxy?.kill();
  }

  async stop(): Promise<void> {
    await this.site.stopAll();
  }

  async close(): Promise<void> {
    this.#server.close();
    await this.site.close();
  }

  nft(...args: readonly string[]): Promise<string> {
    return runInNode('nft', ...args);
  }

  /** Polls until it holds; a failure shows the end of the program's log. */
  eventually(what: string, holds: () => Promise<boolean> | boolean, patience: Patience = {}): Promise<void> {
    return eventually(what, holds, { everyMs: 1, onTimeout: () => this.log.slice(-4000), ...patience });
  }

  /** The sum of all samples that begin with this text. */
  metric(start: string): Promise<number> {
    return sumOfSamples(start);
  }

  /** Whether port 80 of an address answers a new connection; waits patiently, for answers that must come. */
  stillAnswers(address: string): Promise<boolean> {
    return this.answers(address, PATIENCE_MS);
  }

  /** Whether port 80 of an address answers a new connection at once. */
  answers(address: string, withinMs = ATTEMPT_MS): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect({ host: address, port: 80 });
      const settle = (isAnswered: boolean) => {
        socket.destroy();
        resolve(isAnswered);
      };
      socket.setTimeout(withinMs, () => settle(false));
      socket.on('data', () => settle(true)).on('error', () => settle(false));
    });
  }
}
