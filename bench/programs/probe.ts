/**
 * The client of the benchmark: tries connections until one ends as expected. It is a separate process, so that work and
 * garbage collection of the API server do not delay it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

type Outcome = 'connected' | 'refused' | 'silent';

type Request =
  | { readonly id: number; readonly kind: 'expect'; readonly ip: string; readonly outcome: Outcome }
  | { readonly id: number; readonly kind: 'watch-health' | 'longest-answer' };

interface Reply {
  readonly id: number;
  /** A time of the shared clock, or a duration; in ms. */
  readonly ms: number;
}

const silentMs = 50;
const pauseMs = 1;
const healthPauseMs = 5;

/** Milliseconds of a clock that all processes share. */
export function sharedClock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export class Probe {
  readonly #child: ChildProcess = fork(import.meta.filename);
  readonly #waiting = new Map<number, (ms: number) => void>();
  #lastId = 0;

  constructor() {
    this.#child.on('message', ({ id, ms }: Reply) => {
      this.#waiting.get(id)?.(ms);
      this.#waiting.delete(id);
    });
  }

  /** Resolves to the time of the shared clock when a connection to port 80 first had this outcome. */
  expect(ip: string, outcome: Outcome): Promise<number> {
    return this.#ask((id) => ({ id, kind: 'expect', ip, outcome }));
  }

  /** Starts to send requests to the program's health server, one after the other. */
  watchHealth(): Promise<number> {
    return this.#ask((id) => ({ id, kind: 'watch-health' }));
  }

  /** Stops these requests. Resolves to the longest response time in ms. */
  longestAnswer(): Promise<number> {
    return this.#ask((id) => ({ id, kind: 'longest-answer' }));
  }

  async close(): Promise<void> {
    this.#child.kill();
    await once(this.#child, 'close');
  }

  #ask(request: (id: number) => Request): Promise<number> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.send(request(id));
    });
  }
}

function serve(): void {
  const health = new HealthWatch();
  const answer = async (request: Request): Promise<number> => {
    if (request.kind === 'expect') return expectOutcome(request.ip, request.outcome);
    if (request.kind === 'longest-answer') return health.stop();
    health.start();
    return 0;
  };
  process.on('message', async (request: Request) => {
    process.send?.({ id: request.id, ms: await answer(request) });
  });
}

/** Has no time limit of its own: the caller kills this process. */
async function expectOutcome(ip: string, outcome: Outcome): Promise<number> {
  while ((await tryConnect(ip)) !== outcome) await sleep(pauseMs);
  return sharedClock();
}

/** Without a rule the packet goes to an unused address, and no answer comes. */
function tryConnect(ip: string): Promise<Outcome> {
  return new Promise((settle) => {
    const socket = connect({ host: ip, port: 80 });
    const end = (outcome: Outcome): void => {
      socket.destroy();
      clearTimeout(timer);
      settle(outcome);
    };
    const timer = setTimeout(() => end('silent'), silentMs);
    socket.once('connect', () => end('connected'));
    socket.once('error', () => end('refused'));
  });
}

/** Sends one request after the other, and measures from the first response on. */
class HealthWatch {
  #longest = 0;
  #isOn = false;

  start(): void {
    this.#longest = 0;
    this.#isOn = true;
    void this.#run();
  }

  stop(): number {
    this.#isOn = false;
    return this.#longest;
  }

  async #run(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (this.#isOn) {
      const begun = sharedClock();
      if (await isAnswered(agent)) this.#longest = Math.max(this.#longest, sharedClock() - begun);
      await sleep(healthPauseMs);
    }
    agent.destroy();
  }
}

function isAnswered(agent: Agent): Promise<boolean> {
  return new Promise((settle) => {
    const request = get({ host: '127.0.0.1', port: 10256, path: '/livez', agent }, (response) => {
      response.resume();
      response.once('end', () => settle(true));
      response.once('error', () => settle(false));
    });
    request.once('error', () => settle(false));
  });
}

if (import.meta.main) {
  // A benchmark that breaks off does not stop it.
  process.on('disconnect', () => process.exit());
  serve();
}
