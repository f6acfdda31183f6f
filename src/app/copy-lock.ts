import { connect, createServer, type Server } from 'node:net';
import type { SocketOwner } from '../kernel/socket-owner.ts';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { hasCode } from '../lib/thrown.ts';
import { ANOTHER_COPY_RUNS, type Problem } from '../model/problem.ts';
import type { Logger } from '../obs/log.ts';

export interface CopyLockOptions {
  /** The name of an abstract Unix socket. */
  readonly name: string;
  /** What this copy tells another one about itself: `nftables mode, kube-proxy-ts 0.1.0`. */
  readonly about: string;
  readonly owner: (name: string) => Promise<SocketOwner | undefined>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The name of the lock of every copy. */
export const copyLockName = 'kube-proxy-ts';

const retryMs = 500;
const answerMs = 2_000;
const maxAnswerBytes = 1_000;

/**
 * Lets one copy of this program write rules in a network namespace. Two copies would undo each other's changes. The lock
 * is an abstract Unix socket: its name belongs to the network namespace, as rules do, and it is free as soon as the
 * process that listens at it ends, however that ends. Another copy waits until then. An old pod that still ends may so
 * run beside its successor.
 */
export class CopyLock {
  readonly #options: CopyLockOptions;
  #server: Server | undefined;
  #waiting: { readonly since: number; holder: string } | undefined;

  constructor(options: CopyLockOptions) {
    this.#options = options;
  }

  /**
   * Resolves when no other copy can write. Goes on without the lock when the socket cannot be used, or when a user other
   * than root holds it: nobody else shall keep the proxy from its work.
   */
  async acquire(): Promise<void> {
    const { clock, logger } = this.#options;
    while (!(await this.#take())) {
      const holder = await describeHolder(this.#options);
      if (holder) this.#wait(holder);
      await sleep(clock, retryMs);
    }
    if (this.#waiting) logger.info('The other copy of kube-proxy-ts has ended; starting to write rules');
    this.#waiting = undefined;
  }

  /** The other copy, while this one waits for it. */
  problems(): Problem[] {
    if (!this.#waiting) return [];
    const { since, holder } = this.#waiting;
    const text = `another copy of kube-proxy-ts runs on this node (${holder}); this one waits until it ends and writes nothing`;
    return [{ kind: ANOTHER_COPY_RUNS, since, isOutage: true, text }];
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  #wait(holder: string): void {
    const { clock, logger } = this.#options;
    const isKnown = this.#waiting?.holder === holder;
    this.#waiting = { since: this.#waiting?.since ?? clock.now(), holder };
    if (isKnown) return;
    const text = 'Another copy of kube-proxy-ts runs in this network namespace; waiting until it ends';
    logger.error(undefined, text, { holder });
  }

  /** Resolves to false when another process has the lock and may keep it. */
  async #take(): Promise<boolean> {
    try {
      this.#server = await this.#listen();
      return true;
    } catch (error) {
      if (hasCode(error, 'EADDRINUSE')) return this.#isHeldByStranger();
      this.#options.logger.error(error, 'Cannot find out whether another copy of kube-proxy-ts runs');
      return true;
    }
  }

  async #isHeldByStranger(): Promise<boolean> {
    const { name, owner, logger } = this.#options;
    const holder = await owner(name);
    if (!holder || isTrusted(holder)) return false;
    logger.error(undefined, 'Starting without the lock: its holder is not root', { ...holder });
    return true;
  }

  async #listen(): Promise<Server> {
    const { name, about } = this.#options;
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      // Any user can connect. One that does not hang up would take a descriptor, and keep `close` waiting.
      socket.end(about, () => socket.destroy());
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path: `\0${name}` }, resolve);
    });
    // An error while accepting concerns one asker only.
    server.on('error', () => {});
    return server;
  }
}

/** Describes the copy of this program that may write rules; undefined when none may, or when the holder of the lock is not root. */
export async function runningCopy(
  options: Pick<CopyLockOptions, 'name' | 'owner'>,
): Promise<string | undefined> {
  const holder = await options.owner(options.name);
  return holder && isTrusted(holder) ? describeHolder(options) : undefined;
}

function isTrusted({ uid }: SocketOwner): boolean {
  return uid === 0 || uid === process.getuid?.();
}

/** Describes the process that has the lock; undefined when it has just ended. */
async function describeHolder({
  name,
  owner,
}: Pick<CopyLockOptions, 'name' | 'owner'>): Promise<string | undefined> {
  const found = await owner(name);
  if (!found) return undefined;
  const answer = await askHolder(name);
  const pid = found.pid === 0 ? 'in another pid namespace' : `pid ${found.pid}`;
  return answer === '' ? `${pid}, which does not answer` : `${pid}, ${answer}`;
}

/** What the holder tells about itself; empty when it does not answer. */
function askHolder(name: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ path: `\0${name}` });
    const settle = () => {
      socket.destroy();
      resolve(text);
    };
    socket.setEncoding('utf8');
    socket.setTimeout(answerMs, settle);
    socket.on('data', (part: string) => {
      text += part;
      if (text.length > maxAnswerBytes) settle();
    });
    socket.on('error', settle);
    socket.on('close', settle);
  });
}
