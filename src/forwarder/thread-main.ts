import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../lib/clock.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { EPOLLIN, type Sockets } from '../native/sockets.ts';
import type { Limits, Occupancy } from './admission.ts';
import { Engine } from './engine.ts';
import type { ForwarderOptions } from './forwarder.ts';
import { LoopClock } from './loop-clock.ts';
import type { Report } from './reports.ts';

/** Settings of a forwarding thread. */
export interface ThreadSettings extends ForwarderOptions {
  readonly limits: Limits;
  /** Set when several threads share the limits. */
  readonly occupancy?: Occupancy;
}

/** What a forwarding thread is started with. */
export interface ThreadData extends ThreadSettings {
  /** Requests come here. */
  readonly port: MessagePort;
  /** Becomes readable with every request. */
  readonly wakeFd: number;
}

/** The engine's methods that the main thread calls. */
export type Operations = Pick<
  Engine,
  | 'setService'
  | 'removeService'
  | 'listen'
  | 'unlisten'
  | 'traffic'
  | 'connections'
  | 'listeners'
  | 'outlook'
  | 'bindings'
>;

/** From the main thread. A request with a number is answered. */
export type ThreadRequest = { readonly number?: number } & (
  | { readonly op: 'close' }
  | {
      [Op in keyof Operations]: { readonly op: Op; readonly args: Parameters<Operations[Op]> };
    }[keyof Operations]
);

/** To the main thread. An error crosses as its message and code. */
export type ThreadReply =
  | { readonly report: Report }
  | { readonly number: number; readonly result: unknown }
  | { readonly number: number; readonly message: string; readonly code: string };

/** The end of the program waits for its threads, so a thread must return from waiting this often. */
const maxWaitMs = 100;

/**
 * Runs an engine in this worker thread until the main thread asks it to close. It does not return to Node's event loop
 * meanwhile: nothing else happens in this thread, and waiting for traffic is one system call.
 */
export async function main(): Promise<void> {
  const { port, wakeFd, ...options } = workerData as ThreadData;
  const reply = (message: ThreadReply): void => port.postMessage(message);
  const sockets = await loadSockets();
  const clock = new LoopClock(systemClock);
  const engine = new Engine({
    ...options,
    sockets,
    clock,
    random: Math.random,
    report: (report) => reply({ report }),
  });
  let isRunning = true;
  const serveAll = (): void => {
    drain(sockets, wakeFd);
    while (isRunning) {
      const received = receiveMessageOnPort(port);
      if (!received) return;
      isRunning = serve(engine, received.message as ThreadRequest, reply);
    }
  };
  engine.loop.watch(wakeFd, EPOLLIN, { ready: serveAll });
  try {
    // Requests that came before the thread ran.
    serveAll();
    while (isRunning) {
      // On a busy machine a timeout may be due although its event has already happened: handle events first.
      if (clock.isDue) engine.loop.turn(0);
      engine.loop.turn(clock.advance(maxWaitMs));
    }
  } finally {
    // Sockets belong to the process and would outlive this thread.
    engine.close();
  }
}

function drain(sockets: Sockets, fd: number): void {
  const buffer = new Uint8Array(4096);
  while (sockets.read(fd, buffer) === buffer.length);
}

/** Serves one request. Returns false when that was `close`. */
function serve(engine: Engine, request: ThreadRequest, reply: (message: ThreadReply) => void): boolean {
  const { op, number } = request;
  try {
    const result: unknown = op === 'close' ? undefined : Reflect.apply(engine[op], engine, request.args);
    if (number !== undefined) reply({ number, result });
  } catch (error) {
    // A request without a number cannot fail unless there is a defect. The thread ends, and another one is started.
    if (number === undefined) throw error;
    const { message, code = '' } = error as NodeJS.ErrnoException;
    reply({ number, message, code });
  }
  return op !== 'close';
}
