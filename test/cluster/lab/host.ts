import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Command, Reply } from './agent.ts';
import { run } from './namespace.ts';
import { paced } from './pace.ts';
import type { Outcome, Question, Transport } from './traffic.ts';

/** A question with defaults: TCP, and a timeout that is longer than any answer takes. */
export type Ask = { readonly address: string; readonly port: number } & Partial<Question>;

/**
 * Longer than a second: a rejection can arrive while the client's socket is locked, because one processor carries a
 * packet all the way. The client then sees it only when it tries again, after a second.
 */
const defaultTimeoutMs = paced(1_600);

/** On an open connection an answer arrives within milliseconds; the rest is for a busy machine. */
const conversationTimeoutMs = paced(5_000);

export function questionOf(ask: Ask): Question {
  return { transport: 'tcp', timeoutMs: defaultTimeoutMs, ...ask };
}

/** A machine or pod in a namespace of its own, with an agent in it that makes and answers connections. */
export class Host {
  readonly name: string;
  readonly namespace: string;
  readonly #agent: ChildProcess;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #lastId = 0;
  #ended = false;

  /** The namespace must exist. The servers of the host answer with `name`. */
  constructor(name: string, namespace: string) {
    this.name = name;
    this.namespace = namespace;
    const script = fileURLToPath(new URL('./agent.ts', import.meta.url));
    this.#agent = spawn('ip', ['netns', 'exec', namespace, process.execPath, script], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.#agent.stdout)
      createInterface({ input: this.#agent.stdout }).on('line', (line) => this.#settle(line));
    this.#agent.on('exit', () => this.#abandon());
  }

  /** Runs `ip` in this host's namespace. */
  ip(...args: readonly string[]): string {
    return run('ip', '-n', this.namespace, ...args);
  }

  /** Starts a server on a port, at one address or all, that answers with the host's name and the source it saw. */
  async serve(port: number, transport: Transport = 'tcp', address?: string): Promise<void> {
    await this.#do({ op: 'serve', name: this.name, transport, port, ...(address && { address }) });
  }

  async stop(port: number, transport: Transport = 'tcp'): Promise<void> {
    await this.#do({ op: 'stop', transport, port });
  }

  async ask(question: Ask): Promise<Outcome> {
    return (await this.#do({ op: 'ask', question: questionOf(question) })) as Outcome;
  }

  /** Opens a TCP connection that stays open; rejects when no server answers. */
  async open(question: Ask): Promise<OpenConversation> {
    const conversation = (await this.#do({ op: 'open', question: questionOf(question) })) as number;
    return {
      ask: async (timeoutMs = conversationTimeoutMs) =>
        (await this.#do({ op: 'say', conversation, timeoutMs })) as { by: string; source: string } | null,
      outcome: async (timeoutMs = conversationTimeoutMs) =>
        (await this.#do({ op: 'outcome', conversation, timeoutMs })) as Outcome,
      exchange: async (bytes, timeoutMs = conversationTimeoutMs) =>
        (await this.#do({ op: 'outcome', conversation, timeoutMs, bytes })) as Outcome,
      ended: async (timeoutMs = conversationTimeoutMs) =>
        (await this.#do({ op: 'ended', conversation, timeoutMs })) as Outcome,
      close: async () => void (await this.#do({ op: 'hang-up', conversation })),
    };
  }

  close(): void {
    this.#agent.stdin?.end();
  }

  #do(command: Command): Promise<unknown> {
    const id = ++this.#lastId;
    if (this.#ended) return Promise.reject(new Error(`${this.name}: the agent has ended`));
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, (reply) => {
        if ('error' in reply) reject(new Error(`${this.name}: ${reply.error}`));
        else resolve(reply.result);
      });
      this.#agent.stdin?.write(`${JSON.stringify({ id, command })}\n`);
    });
  }

  #settle(line: string): void {
    const reply = JSON.parse(line) as Reply;
    this.#waiting.get(reply.id)?.(reply);
    this.#waiting.delete(reply.id);
  }

  #abandon(): void {
    this.#ended = true;
    for (const [id, settle] of this.#waiting) settle({ id, error: 'the agent ended' });
    this.#waiting.clear();
  }
}

/** A connection that a host keeps open. */
export interface OpenConversation {
  /** Returns the server that answers on it now; null when none does in time. */
  ask(timeoutMs?: number): Promise<{ by: string; source: string } | null>;
  /** Asks on it and returns what became of the question. */
  outcome(timeoutMs?: number): Promise<Outcome>;
  /** Asks on it with this many bytes, for an answer of the same length. */
  exchange(bytes: number, timeoutMs?: number): Promise<Outcome>;
  /** Waits for its end without sending anything; `silence` when it does not end in time. */
  ended(timeoutMs?: number): Promise<Outcome>;
  close(): Promise<void>;
}
