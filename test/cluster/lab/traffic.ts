import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { connect, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { askSCTP, sctpSocket } from './sctp.ts';
import { nextSourcePort } from './source-port.ts';

export type Transport = 'tcp' | 'udp' | 'sctp';

/** What a client observed. */
export type Outcome =
  | { readonly kind: 'answered'; readonly by: string; readonly source: string }
  /** An ICMP error said that the port is unreachable. */
  | { readonly kind: 'rejected' }
  /** A TCP reset. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'silence' }
  | { readonly kind: 'failed'; readonly code: string };

export interface Question {
  readonly transport: Transport;
  readonly address: string;
  readonly port: number;
  /** Source address; the kernel chooses when absent. */
  readonly source?: string;
  readonly sourcePort?: number;
  readonly timeoutMs: number;
}

/** A server that answers every client with its name and the source address that it saw. */
export interface EchoServer {
  close(): Promise<void>;
}

/** A TCP connection that stays open. */
export interface Conversation {
  /** Returns the server that answers now; undefined when none does in time. */
  ask(timeoutMs: number): Promise<{ by: string; source: string } | undefined>;
  /** Asks once more and returns what became of it. */
  outcome(timeoutMs: number): Promise<Outcome>;
  /** Waits for its end without sending anything; `silence` when it does not end in time. */
  ended(timeoutMs: number): Promise<Outcome>;
  close(): void;
}

export async function serve(
  name: string,
  transport: Transport,
  port: number,
  address = '::',
): Promise<EchoServer> {
  const answer = (source: string | undefined): string =>
    `${JSON.stringify({ by: name, source: unmapped(source) })}\n`;
  switch (transport) {
    case 'tcp':
      return serveStream(answer, { port, host: address });
    case 'udp':
      return serveUDP(answer, port, address);
    case 'sctp':
      return serveStream(answer, { fd: sctpSocket(port, address) });
  }
}

type Answer = (source: string | undefined) => string;

async function serveStream(
  answer: Answer,
  where: ListenOptions & { readonly fd?: number },
): Promise<EchoServer> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.write(answer(socket.remoteAddress));
    socket.on('data', () => socket.write(answer(socket.remoteAddress)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, resolve);
  });
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

async function serveUDP(answer: Answer, port: number, address: string): Promise<EchoServer> {
  const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4' });
  socket.on('message', (_, peer) => socket.send(answer(peer.address), peer.port, peer.address));
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, address, resolve);
  });
  return { close: () => new Promise((resolve) => socket.close(() => resolve())) };
}

/** Finds the ICMP errors that concern a question, while several questions are asked at the same time. */
export interface UnreachableWitness {
  /** Calls `seen` for every "port unreachable" about the question's destination; returns unsubscribe. */
  watch(question: Question, seen: () => void): () => void;
  /** Reports at once the errors that have arrived by now. */
  drain(): void;
}

/** Sends one question with a new flow. */
export async function ask(question: Question, witness: UnreachableWitness): Promise<Outcome> {
  const outcome = await asked(question, witness);
  return outcome.kind === 'failed' && outcome.code === 'ECONNREFUSED' ? { kind: 'reset' } : outcome;
}

function asked(question: Question, witness: UnreachableWitness): Promise<Outcome> {
  switch (question.transport) {
    case 'tcp':
      return askTCP(question, witness);
    case 'udp':
      return askUDP(question, witness);
    case 'sctp':
      return askSCTP(question, witness, answered);
  }
}

function askTCP(question: Question, witness: UnreachableWitness): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = openSocket(question);
    const timer = setTimeout(() => finish({ kind: 'silence' }), question.timeoutMs);
    const finish = (outcome: Outcome): void => {
      clearTimeout(timer);
      stopWatching();
      socket.destroy();
      resolve(outcome);
    };
    const stopWatching = witness.watch(question, () => finish({ kind: 'rejected' }));
    socket.on('data', (data) => finish(answered(data.toString())));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      witness.drain();
      finish({ kind: 'failed', code: error.code ?? '' });
    });
    socket.on('end', () => finish({ kind: 'failed', code: 'END' }));
  });
}

function openSocket({ address, port, source, sourcePort }: Question): Socket {
  return connect({
    host: address,
    port,
    ...(source === undefined ? {} : { localAddress: source }),
    ...(sourcePort === undefined ? {} : { localPort: sourcePort }),
  });
}

function askUDP(question: Question, witness: UnreachableWitness): Promise<Outcome> {
  const { address, port, source, sourcePort, timeoutMs } = question;
  return new Promise((resolve) => {
    const socket: DatagramSocket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4' });
    const timer = setTimeout(() => finish({ kind: 'silence' }), timeoutMs);
    let isOpen = true;
    const finish = (outcome: Outcome): void => {
      if (!isOpen) return;
      isOpen = false;
      clearTimeout(timer);
      stopWatching();
      socket.close();
      resolve(outcome);
    };
    const stopWatching = witness.watch(question, () => finish({ kind: 'rejected' }));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      witness.drain();
      finish({ kind: 'failed', code: error.code ?? '' });
    });
    socket.on('message', (data) => finish(answered(data.toString())));
    socket.bind(sourcePort ?? nextSourcePort(), source, () => {
      socket.connect(port, address, () => isOpen && socket.send('?'));
    });
  });
}

/** Opens a connection that stays open. Rejects when no server answers. */
export async function converse(question: Question): Promise<Conversation> {
  const socket = openSocket(question);
  let end: Outcome | undefined;
  const next = (timeoutMs: number): Promise<Outcome> =>
    new Promise((resolve) => {
      const onData = (data: Buffer) => finish(answered(data.toString()));
      const onError = () => finish(end ?? { kind: 'silence' });
      const timer = setTimeout(() => finish({ kind: 'silence' }), timeoutMs);
      const finish = (outcome: Outcome): void => {
        clearTimeout(timer);
        socket.off('data', onData).off('error', onError);
        resolve(outcome);
      };
      if (end) finish(end);
      else socket.on('data', onData).on('error', onError);
    });
  socket.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
    end = code === 'ECONNRESET' ? { kind: 'reset' } : { kind: 'failed', code };
    socket.destroy();
  });
  const first = await next(question.timeoutMs);
  if (first.kind !== 'answered') throw new Error(`no conversation with ${question.address}:${question.port}`);
  const say = (timeoutMs: number): Promise<Outcome> => {
    const answer = next(timeoutMs);
    socket.write('?');
    return answer;
  };
  return {
    outcome: say,
    ended: next,
    ask: async (timeoutMs) => {
      const outcome = await say(timeoutMs);
      return outcome.kind === 'answered' ? { by: outcome.by, source: outcome.source } : undefined;
    },
    close: () => socket.destroy(),
  };
}

function answered(text: string): Outcome {
  const { by, source } = JSON.parse(text.split('\n')[0] ?? '') as { by: string; source: string };
  return { kind: 'answered', by, source };
}

function unmapped(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '');
}
