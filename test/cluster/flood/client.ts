/**
 * The client that floods, in a process of its own. It ends when its parent ends, or after `longestMs`.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Flood, Target } from './flood.ts';

const longestMs = 120_000;
const againMs = 5_000;
const byteMs = 1_000;
/** As a client on another machine, it has another address than the program. */
const localAddress = '127.0.0.2';
/** So many connections are opened in one go, then others get their turn. */
const openedAtOnce = 200;

export class FloodClient {
  readonly #child: ChildProcess;

  constructor(flood: Flood) {
    // With normal priority, also when the benchmark runs with a higher one: a real attacker has a machine of its own.
    const execArgv = ['--other', '0', process.execPath];
    this.#child = fork(import.meta.filename, [JSON.stringify(flood)], { execPath: 'chrt', execArgv });
  }

  /** Resolves when every connection was opened once, or refused. */
  async started(): Promise<void> {
    await once(this.#child, 'message');
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'close');
  }
}

function run({ behaviour, connections, depth, targets }: Flood): void {
  const open = (target: Target): Socket => {
    const socket = connect({ host: target.host, port: target.port, localAddress });
    const request = `GET ${target.path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const start = {
      pipelined: () => sendAgain(socket, request.repeat(depth), depth),
      unread: () => socket.pause().write(request.repeat(depth)),
      slow: () => sendSlowly(socket, request),
      half: () => socket.write(request.slice(0, 20)),
      silent: () => undefined,
    }[behaviour];
    socket.on('connect', start).on('error', () => socket.destroy());
    socket.on('close', () => setTimeout(() => open(target), againMs));
    return socket;
  };
  const all = targets.flatMap((target) => Array.from({ length: connections }, () => target));
  let settled = 0;
  const openSome = (): void => {
    for (const target of all.splice(0, openedAtOnce)) {
      const settle = () => {
        if (++settled === connections * targets.length) process.send?.('started');
      };
      // A connection that is refused counts, too; only the first of the two events does.
      open(target).once('ready', settle);
    }
    if (all.length > 0) setImmediate(openSome);
  };
  openSome();
}

/** Sends the requests anew whenever all answers have come. */
function sendAgain(socket: Socket, requests: string, depth: number): void {
  let answers = 0;
  socket.on('data', (bytes) => {
    for (let at = bytes.indexOf('HTTP/1.1 '); at >= 0; at = bytes.indexOf('HTTP/1.1 ', at + 1)) answers++;
    // A status line that is split over two pieces goes uncounted.
    if (answers < depth - 1) return;
    answers = 0;
    socket.write(requests);
  });
  socket.write(requests);
}

function sendSlowly(socket: Socket, request: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(request[at++] ?? 'x'), byteMs);
  socket.on('close', () => clearInterval(timer));
}

if (import.meta.main) {
  setTimeout(() => process.exit(), longestMs);
  process.on('disconnect', () => process.exit());
  run(JSON.parse(process.argv[2] ?? '') as Flood);
}
