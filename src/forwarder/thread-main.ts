import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../lib/clock.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { EPOLLIN, type Sockets } from '../native/sockets.ts';
import { Engine } from './engine.ts';
import { LoopClock } from './loop-clock.ts';
import type { ThreadData, ThreadReply, ThreadRequest } from './thread-protocol.ts';

/** The end of the program waits for its threads; a thread looks up this often. */
const maxWaitMs = 100;

/**
 * Runs an engine in this worker thread, at the command of the main thread. It does not return to Node's event loop
 * until it is told to close: nothing else happens in this thread, and waiting for traffic is one system call.
 */
export async function main(): Promise<void> {
  const { port, wakeFd, ...options } = workerData as ThreadData;
  const sockets = await loadSockets();
  const clock = new LoopClock(systemClock);
  const engine = new Engine({
    ...options,
    sockets,
    clock,
    random: Math.random,
    report: (report) => port.postMessage({ op: 'report', report } satisfies ThreadReply),
  });
  let isRunning = true;
  const serveAll = (): void => {
    drain(sockets, wakeFd);
    for (
      let message = receiveMessageOnPort(port);
      message && isRunning;
      message = receiveMessageOnPort(port)
    ) {
      isRunning = serve(engine, message.message as ThreadRequest, port);
    }
  };
  engine.loop.watch(wakeFd, EPOLLIN, { ready: serveAll });
  try {
    // What was asked before there was anybody to listen.
    serveAll();
    while (isRunning) {
      // On a busy machine time may be up for what has long happened: that is looked at before it counts as missed.
      if (clock.isDue) engine.loop.turn(0);
      engine.loop.turn(clock.advance(maxWaitMs));
    }
  } finally {
    // Sockets belong to the process: left open, they would outlive this thread.
    engine.close();
  }
}

function drain(sockets: Sockets, fd: number): void {
  const buffer = new Uint8Array(4096);
  while (sockets.read(fd, buffer) === buffer.length);
}

/** Does one thing; false when that was to close. */
function serve(engine: Engine, request: ThreadRequest, port: MessagePort): boolean {
  const reply = (message: ThreadReply): void => port.postMessage(message);
  try {
    switch (request.op) {
      case 'setService':
        engine.setService(request.key, request.service);
        return true;
      case 'removeService':
        engine.removeService(request.key);
        return true;
      case 'listen':
        reply({
          op: 'listening',
          number: request.number,
          port: engine.listen(request.id, request.listening),
        });
        return true;
      case 'unlisten':
        engine.unlisten(request.id, request.endConnections);
        return true;
      case 'traffic':
        reply({ op: 'traffic', number: request.number, traffic: engine.traffic() });
        return true;
      case 'listeners':
        reply({ op: 'listeners', number: request.number, listeners: engine.listeners() });
        return true;
      case 'outlook': {
        const { number, protocol, to, client } = request;
        reply({ op: 'outlook', number, outlook: engine.outlook(protocol, to, client) });
        return true;
      }
      case 'close':
        reply({ op: 'closed', number: request.number });
        return false;
    }
  } catch (error) {
    // A request without an answer that fails is a defect: it ends the thread, which is then started anew.
    if (!('number' in request)) throw error;
    const { message, code = '' } = error as NodeJS.ErrnoException;
    reply({ op: 'failed', number: request.number, message, code });
    return true;
  }
}
