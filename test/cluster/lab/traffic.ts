import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { connect, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { SOCK_DGRAM, SOL_IP } from '../../../src/native/libc.ts';
import { boundSocket, libc } from './native-socket.ts';
import { askSCTP, sctpSocket } from './sctp.ts';
import { nextSourcePort } from './source-port.ts';

export type Transport = 'tcp' | 'udp' | 'sctp';

/** What a client observed. */
export type Outcome =
  | { readonly kind: 'answered'; readonly by: string; readonly source: string }
  /** An ICMP error said that the port is unreachable. */
  | { readonly kind: 'rejected' }
  /** An ICMP error said that the packet was forwarded too often; only for questions with a `ttl`. */
  | { readonly kind: 'expired' }
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
  /** What is special about the datagram. */
  readonly datagram?: DatagramOptions;
}

/** What may be special about the datagram of a question over UDP. */
export interface DatagramOptions {
  /** Its length, and that of the answer. */
  readonly bytes?: number;
  /** How often it may be forwarded. */
  readonly ttl?: number;
  /** Whether its IP header has an option that records its route; only in IPv4. */
  readonly recordsRoute?: boolean;
}

/** A server that answers every client with its name and the source address that it saw; a long question gets a long answer. */
export interface EchoServer {
  close(): Promise<void>;
}

/** A TCP connection that stays open. */
export interface Conversation {
  /** Returns the server that answers now; undefined when none does in time. */
  ask(timeoutMs: number): Promise<{ by: string; source: string } | undefined>;
  /** Asks once more, with this many bytes, for an answer of the same length; returns what became of it. */
  outcome(timeoutMs: number, bytes?: number): Promise<Outcome>;
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
  const answer: Answer = (source, bytes = 0) =>
    `${JSON.stringify({ by: name, source: unmapped(source) }).padEnd(bytes - 1)}\n`;
  switch (transport) {
    case 'tcp':
      return serveStream(answer, { port, host: address });
    case 'udp':
      return serveUDP(answer, port, address);
    case 'sctp':
      return serveStream(answer, { fd: sctpSocket(port, address) });
  }
}

/** Returns a line of this many bytes, or more. */
type Answer = (source: string | undefined, bytes?: number) => string;

const questionMark = '?';

/** Returns a question of this many bytes. */
function questionText(bytes = 0): string {
  return questionMark.padStart(bytes);
}

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
    let asked = 0;
    socket.on('data', (data) => {
      asked += data.length;
      if (!endsWith(data, questionMark)) return;
      socket.write(answer(socket.remoteAddress, asked));
      asked = 0;
    });
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
  socket.on('message', ({ length }, peer) => {
    socket.send(answer(peer.address, length), peer.port, peer.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, address, resolve);
  });
  return { close: () => new Promise((resolve) => socket.close(() => resolve())) };
}

/** The ICMP errors that concern a question, while several questions are asked at the same time. */
export interface IcmpErrors {
  /**
   * Calls `seen` for every "port unreachable" about the question's destination, and for "time exceeded" if the question
   * has a `ttl`; returns unsubscribe.
   */
  watch(question: Question, seen: (kind: 'rejected' | 'expired') => void): () => void;
  /** Reports at once the errors that have arrived by now. */
  drain(): void;
}

/** Sends one question with a new flow. */
export async function ask(question: Question, witness: IcmpErrors): Promise<Outcome> {
  const outcome = await asked(question, witness);
  return outcome.kind === 'failed' && outcome.code === 'ECONNREFUSED' ? { kind: 'reset' } : outcome;
}

function asked(question: Question, witness: IcmpErrors): Promise<Outcome> {
  switch (question.transport) {
    case 'tcp':
      return askTCP(question, witness);
    case 'udp':
      return askUDP(question, witness);
    case 'sctp':
      return askSCTP(question, witness, answered);
  }
}

function askTCP(question: Question, witness: IcmpErrors): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = openSocket(question);
    const timer = setTimeout(() => finish({ kind: 'silence' }), question.timeoutMs);
    const finish = (outcome: Outcome): void => {
      clearTimeout(timer);
      stopWatching();
      socket.destroy();
      resolve(outcome);
    };
    const stopWatching = witness.watch(question, (kind) => finish({ kind }));
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

function askUDP(question: Question, witness: IcmpErrors): Promise<Outcome> {
  const { address, port, source, sourcePort = nextSourcePort(), timeoutMs, datagram = {} } = question;
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
    const stopWatching = witness.watch(question, (kind) => finish({ kind }));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      witness.drain();
      finish({ kind: 'failed', code: error.code ?? '' });
    });
    socket.on('message', (data) => finish(answered(data.toString())));
    const send = () => {
      if (datagram.ttl !== undefined) socket.setTTL(datagram.ttl);
      socket.connect(port, address, () => isOpen && socket.send(questionText(datagram.bytes)));
    };
    if (datagram.recordsRoute) socket.bind({ fd: recordingSocket(sourcePort, source) }, send);
    else socket.bind(sourcePort, source, send);
  });
}

const IP_OPTIONS = 4;
/** Record route: type, length, the position of the next address, room for three, and the end of the options. */
const recordRoute = Uint8Array.of(7, 15, 4, ...new Uint8Array(13));

/** Opens an IPv4 socket for UDP whose datagrams record their route. */
function recordingSocket(port: number, source = '0.0.0.0'): number {
  const fd = boundSocket(SOCK_DGRAM, 0, port, source);
  libc.setsockopt(fd, SOL_IP, IP_OPTIONS, recordRoute);
  return fd;
}

/** Opens a connection that stays open. Rejects when no server answers. */
export async function converse(question: Question): Promise<Conversation> {
  const socket = openSocket(question);
  let end: Outcome | undefined;
  const next = (timeoutMs: number): Promise<Outcome> =>
    new Promise((resolve) => {
      let text = '';
      const onData = (data: Buffer) => {
        text += data.toString();
        if (endsWith(data, '\n')) finish(answered(text));
      };
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
  const say = (timeoutMs: number, bytes?: number): Promise<Outcome> => {
    const answer = next(timeoutMs);
    socket.write(questionText(bytes));
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

function endsWith(data: Buffer, character: string): boolean {
  return data.at(-1) === character.charCodeAt(0);
}

function unmapped(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '');
}
