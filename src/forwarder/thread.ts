import { writeSync } from 'node:fs';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Sockets } from '../native/sockets.ts';
import type {
  ForwardedService,
  Forwarder,
  ListenerState,
  Listening,
  Outlook,
  TrafficReport,
} from './forwarder.ts';
import type { Report } from './reports.ts';
import type { SocketAddress } from './socket-address.ts';
import type { ThreadReply, ThreadRequest, ThreadSettings } from './thread-protocol.ts';

export interface ThreadOptions {
  readonly settings: ThreadSettings;
  /** Of this thread; only to make the pipe that wakes the other one. */
  readonly sockets: Sockets;
  readonly clock: Clock;
  readonly report: (report: Report) => void;
}

/** Beside the sources, or beside the bundle that this file is part of. */
const workerURL = new URL(
  import.meta.url.endsWith('.ts') ? './worker.ts' : './forwarder-worker.js',
  import.meta.url,
);

/** Objects of a connection live as long as it does; room for more of them only makes the process larger. */
const maxYoungGenerationSizeMb = 8;

/** A worker and the ways to it. */
interface Connection {
  worker: Worker | undefined;
  readonly port: MessagePort;
  /** The other end of `port`: requests wait here until the worker runs. */
  readonly far: MessagePort;
  readonly pipe: readonly [number, number];
}

const wakePipeBytes = 4096;
const wakeByte = Uint8Array.of(0);
/** A thread that fails again and again must not keep the node busy. */
const restartMs = 1_000;

/** A listener that was asked for and not closed since. */
interface Wanted {
  /** With the port, as soon as that is known. */
  listening: Listening;
  /** Only then a thread that replaces another opens it again: whoever asked knows of it. */
  wasOpened: boolean;
}

interface Waiting {
  readonly resolve: (reply: ThreadReply) => void;
  readonly reject: (error: Error) => void;
}

/** A request without its number, for each of the kinds that have one. */
type Question = {
  [Op in ThreadRequest['op']]: Omit<Extract<ThreadRequest, { op: Op; number: number }>, 'number'>;
}['listen' | 'traffic' | 'listeners' | 'outlook' | 'close'];

/**
 * A forwarder in a thread of its own: neither does traffic wait for the rest of the program, nor the other way round.
 * A thread that dies is replaced, with the same services at the same ports; its connections are lost.
 */
export class ForwarderThread implements Forwarder {
  readonly #options: ThreadOptions;
  readonly #services = new Map<string, ForwardedService>();
  readonly #wanted = new Map<string, Wanted>();
  readonly #waiting = new Map<number, Waiting>();
  #connection: Connection;
  #number = 0;
  #isClosed = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.#connection = this.#connect();
    this.#start(this.#connection);
  }

  setService(key: string, service: ForwardedService): void {
    this.#services.set(key, service);
    this.#tell({ op: 'setService', key, service });
  }

  removeService(key: string): void {
    this.#services.delete(key);
    this.#tell({ op: 'removeService', key });
  }

  async listen(id: string, listening: Listening): Promise<number> {
    if (this.#wanted.has(id)) throw new Error(`there is a listener ${id} already`);
    const wanted: Wanted = { listening, wasOpened: false };
    // Before there is an answer: one that is closed meanwhile must not come back with it.
    this.#wanted.set(id, wanted);
    try {
      const reply = await this.#ask({ op: 'listen', id, listening });
      const port = reply.op === 'listening' ? reply.port : 0;
      wanted.listening = { ...listening, at: { ...listening.at, port } };
      wanted.wasOpened = true;
      return port;
    } catch (error) {
      if (this.#wanted.get(id) === wanted) this.#wanted.delete(id);
      throw error;
    }
  }

  unlisten(id: string, endConnections: boolean): void {
    this.#wanted.delete(id);
    this.#tell({ op: 'unlisten', id, endConnections });
  }

  async traffic(): Promise<TrafficReport> {
    const reply = await this.#ask({ op: 'traffic' });
    return reply.op === 'traffic' ? reply.traffic : new Map();
  }

  async listeners(): Promise<ReadonlyMap<string, ListenerState>> {
    const reply = await this.#ask({ op: 'listeners' });
    return reply.op === 'listeners' ? reply.listeners : new Map();
  }

  async outlook(
    protocol: Listening['protocol'],
    to: SocketAddress,
    client: string,
  ): Promise<Outlook | undefined> {
    const reply = await this.#ask({ op: 'outlook', protocol, to, client });
    return reply.op === 'outlook' ? reply.outlook : undefined;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#connection.worker) await this.#ask({ op: 'close' }).catch(() => undefined);
    await this.#connection.worker?.terminate();
    this.#disconnect(this.#connection);
  }

  #connect(): Connection {
    const pipe = this.#options.sockets.pipe(wakePipeBytes);
    if (!pipe) throw new Error('cannot open a pipe to a forwarding thread');
    const { port1: port, port2: far } = new MessageChannel();
    port.on('message', (reply: ThreadReply) => this.#take(reply));
    // A program that has nothing else to do, and waits for no answer, may end.
    port.unref();
    return { worker: undefined, port, far, pipe };
  }

  #start(connection: Connection): void {
    const { far, pipe } = connection;
    const worker = new Worker(workerURL, {
      workerData: { ...this.#options.settings, port: far, wakeFd: pipe[0] },
      transferList: [far],
      execArgv: [],
      argv: [],
      resourceLimits: { maxYoungGenerationSizeMb },
    });
    worker.on('error', (error) => this.#lost(connection, error.message));
    worker.on('exit', (code) => this.#lost(connection, `it ended with ${code}`));
    worker.unref();
    connection.worker = worker;
  }

  #disconnect({ port, pipe }: Connection): void {
    port.close();
    for (const fd of pipe) this.#options.sockets.close(fd);
  }

  #lost(connection: Connection, reason: string): void {
    if (connection !== this.#connection) return;
    for (const { reject } of this.#waiting.values())
      reject(new Error(`the forwarding thread failed: ${reason}`));
    this.#waiting.clear();
    if (this.#isClosed) return;
    this.#options.report({ problem: 'A forwarding thread failed and is replaced', detail: reason, times: 1 });
    this.#disconnect(connection);
    const next = this.#connect();
    this.#connection = next;
    this.#options.clock.setTimeout(() => !this.#isClosed && this.#start(next), restartMs);
    for (const [key, service] of this.#services) this.#tell({ op: 'setService', key, service });
    for (const [id, wanted] of this.#wanted) {
      if (wanted.wasOpened) this.#reopen(id, wanted, (detail) => this.#reportLost(detail));
    }
  }

  /** Has a new thread open what the old one had; until the address can be had again, if need be. */
  #reopen(id: string, wanted: Wanted, onFailure: (detail: string) => void): void {
    const connection = this.#connection;
    const isWanted = (): boolean =>
      !this.#isClosed && this.#wanted.get(id) === wanted && connection === this.#connection;
    this.#ask({ op: 'listen', id, listening: wanted.listening }).catch((error: unknown) => {
      // A thread that was lost in turn has been replaced, and its replacement asked.
      if (!isWanted()) return;
      onFailure(`${id}: ${messageOf(error)}`);
      this.#options.clock.setTimeout(() => isWanted() && this.#reopen(id, wanted, () => {}), restartMs);
    });
  }

  #reportLost(detail: string): void {
    this.#options.report({ problem: 'A listener was lost and is opened again', detail, times: 1 });
  }

  #tell(request: ThreadRequest): void {
    this.#connection.port.postMessage(request);
    try {
      writeSync(this.#connection.pipe[1], wakeByte);
    } catch (error) {
      // A full pipe wakes as well as one more byte would.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }

  #ask(question: Question): Promise<ThreadReply> {
    const number = ++this.#number;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#connection.port.ref();
      this.#tell({ ...question, number });
    });
  }

  #take(reply: ThreadReply): void {
    if (reply.op === 'report') {
      this.#options.report(reply.report);
      return;
    }
    const waiting = this.#waiting.get(reply.number);
    this.#waiting.delete(reply.number);
    if (this.#waiting.size === 0) this.#connection.port.unref();
    if (reply.op === 'failed') waiting?.reject(Object.assign(new Error(reply.message), { code: reply.code }));
    else waiting?.resolve(reply);
  }
}
