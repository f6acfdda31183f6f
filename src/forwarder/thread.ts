import { writeSync } from 'node:fs';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Sockets } from '../native/sockets.ts';
import type { ConnectionReport } from './connection-log.ts';
import type { ForwardedService, Forwarder, ListenerState, Listening, TrafficReport } from './forwarder.ts';
import type { Report } from './reports.ts';
import type { Operations, ThreadData, ThreadReply, ThreadRequest, ThreadSettings } from './thread-main.ts';

interface ThreadOptions {
  readonly settings: ThreadSettings;
  /** Used for the pipe that wakes the thread. */
  readonly sockets: Sockets;
  readonly clock: Clock;
  readonly report: (report: Report) => void;
}

/** Beside the sources, or beside the bundle that this file is part of. */
const workerURL = new URL(
  import.meta.url.endsWith('.ts') ? './worker.ts' : './forwarder-worker.js',
  import.meta.url,
);

/** A connection's objects live as long as it does; a larger young generation only makes the process larger. */
const maxYoungGenerationSizeMb = 8;

/** A worker and the channels to it. */
interface Connection {
  worker: Worker | undefined;
  readonly port: MessagePort;
  /** The worker's end of `port`: requests wait here until the worker runs. */
  readonly far: MessagePort;
  readonly pipe: readonly [number, number];
}

const wakePipeBytes = 4096;
const wakeByte = Uint8Array.of(0);
/** A thread that fails again and again must not keep the node busy. */
const restartMs = 1_000;

/** A listener that the caller has requested and not closed. */
interface Wanted {
  /** Includes the port once it is known. */
  listening: Listening;
  /** Whether the caller got its port. Only then does a replacement thread open it again. */
  wasOpened: boolean;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A forwarder in a thread of its own, so that neither traffic nor the rest of the program waits for the other.
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
    this.#send({ op: 'setService', args: [key, service] });
  }

  removeService(key: string): void {
    this.#services.delete(key);
    this.#send({ op: 'removeService', args: [key] });
  }

  async listen(id: string, listening: Listening): Promise<number> {
    if (this.#wanted.has(id)) throw new Error(`there is a listener ${id} already`);
    const wanted: Wanted = { listening, wasOpened: false };
    // Recorded before the answer: if `unlisten` comes first, the answer must not bring the listener back.
    this.#wanted.set(id, wanted);
    try {
      const port = await this.#call('listen', id, listening);
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
    this.#send({ op: 'unlisten', args: [id, endConnections] });
  }

  traffic(): Promise<TrafficReport> {
    return this.#call('traffic');
  }

  connections(): Promise<ConnectionReport> {
    return this.#call('connections');
  }

  listeners(): Promise<ReadonlyMap<string, ListenerState>> {
    return this.#call('listeners');
  }

  outlook(...args: Parameters<Forwarder['outlook']>): ReturnType<Forwarder['outlook']> {
    return this.#call('outlook', ...args);
  }

  bindings(...args: Parameters<Forwarder['bindings']>): ReturnType<Forwarder['bindings']> {
    return this.#call('bindings', ...args);
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
    port.on('message', (reply: ThreadReply) => this.#receive(reply));
    // The port keeps the program running only while an answer is pending.
    port.unref();
    return { worker: undefined, port, far, pipe };
  }

  #start(connection: Connection): void {
    const { far, pipe } = connection;
    const workerData: ThreadData = { ...this.#options.settings, port: far, wakeFd: pipe[0] };
    const worker = new Worker(workerURL, {
      workerData,
      transferList: [far],
      execArgv: [],
      argv: [],
      resourceLimits: { maxYoungGenerationSizeMb },
    });
    worker.on('error', (error) => this.#replace(connection, error.message));
    worker.on('exit', (code) => this.#replace(connection, `it ended with ${code}`));
    worker.unref();
    connection.worker = worker;
  }

  #disconnect({ port, pipe }: Connection): void {
    port.close();
    for (const fd of pipe) this.#options.sockets.close(fd);
  }

  /** Starts another thread in place of a failed one and restores its services and listeners. */
  #replace(failed: Connection, reason: string): void {
    if (failed !== this.#connection) return;
    for (const { reject } of this.#waiting.values())
      reject(new Error(`the forwarding thread failed: ${reason}`));
    this.#waiting.clear();
    if (this.#isClosed) return;
    this.#options.report({ problem: 'Forwarding thread failed; starting another', detail: reason, times: 1 });
    this.#disconnect(failed);
    const next = this.#connect();
    this.#connection = next;
    this.#options.clock.setTimeout(() => !this.#isClosed && this.#start(next), restartMs);
    for (const [key, service] of this.#services) this.#send({ op: 'setService', args: [key, service] });
    for (const [id, wanted] of this.#wanted) {
      if (wanted.wasOpened) this.#reopen(id, wanted, true);
    }
  }

  /** Opens a listener in the replacement thread; reports the first failure, and retries until the address is available. */
  #reopen(id: string, wanted: Wanted, isFirst: boolean): void {
    const connection = this.#connection;
    const isWanted = (): boolean =>
      !this.#isClosed && this.#wanted.get(id) === wanted && connection === this.#connection;
    this.#call('listen', id, wanted.listening).catch((error: unknown) => {
      // If this thread failed too, its replacement has already been asked.
      if (!isWanted()) return;
      const detail = `${id}: ${messageOf(error)}`;
      const problem = 'Failed to reopen a listener; retrying';
      if (isFirst) this.#options.report({ problem, detail, times: 1 });
      this.#options.clock.setTimeout(() => isWanted() && this.#reopen(id, wanted, false), restartMs);
    });
  }

  #send(request: ThreadRequest): void {
    this.#connection.port.postMessage(request);
    try {
      writeSync(this.#connection.pipe[1], wakeByte);
    } catch (error) {
      // A full pipe wakes the thread as well as one more byte would.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }

  /** Calls a method of the thread's engine. */
  async #call<Op extends keyof Operations>(
    op: Op,
    ...args: Parameters<Operations[Op]>
  ): Promise<ReturnType<Operations[Op]>> {
    return (await this.#ask({ op, args } as ThreadRequest)) as ReturnType<Operations[Op]>;
  }

  #ask(request: ThreadRequest): Promise<unknown> {
    const number = ++this.#number;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#connection.port.ref();
      this.#send({ ...request, number });
    });
  }

  #receive(reply: ThreadReply): void {
    if ('report' in reply) {
      this.#options.report(reply.report);
      return;
    }
    const waiting = this.#waiting.get(reply.number);
    this.#waiting.delete(reply.number);
    if (this.#waiting.size === 0) this.#connection.port.unref();
    if ('result' in reply) waiting?.resolve(reply.result);
    else waiting?.reject(Object.assign(new Error(reply.message), { code: reply.code }));
  }
}
