import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { encodeAddress } from '../../src/forwarder/socket-address.ts';
import { AF_INET, SOCK_STREAM, type Sockets } from '../../src/native/sockets.ts';

export { freePort } from '../free-port.ts';

/** Things to undo after a test, newest first. */
export class Cleanups {
  readonly #undo: (() => unknown)[] = [];

  add(undo: () => unknown): void {
    this.#undo.push(undo);
  }

  async run(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) await undo();
  }
}

export interface Peer {
  readonly ip: string;
  readonly port: number;
}

/** A TCP server at a free port with a handler for every connection. */
export async function tcpPeer(
  cleanups: Cleanups,
  treat: (socket: Socket) => void,
  ip = '127.0.0.1',
): Promise<Peer & { server: Server; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    treat(socket);
  });
  server.listen(0, ip);
  await once(server, 'listening');
  cleanups.add(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { ip, port: (server.address() as AddressInfo).port, server, sockets };
}

/** Sends its name and then echoes; ends when the client does. */
export function echoAs(name: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(`${name}:`);
    socket.pipe(socket);
  };
}

/** A UDP server at a free port that answers with its name and the datagram. */
export async function udpPeer(cleanups: Cleanups, name: string, ip = '127.0.0.1'): Promise<Peer> {
  const socket = createSocket(ip.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (message, sender) => {
    socket.send(Buffer.concat([Buffer.from(`${name}:`), message]), sender.port, sender.address);
  });
  socket.bind(0, ip);
  await once(socket, 'listening');
  cleanups.add(() => socket.close());
  return { ip, port: socket.address().port };
}

/** A client that sends datagrams from one port and receives answers. */
export class UDPClient {
  readonly #socket: Datagrams;

  static async open(cleanups: Cleanups, ip = '127.0.0.1'): Promise<UDPClient> {
    const socket = createSocket({ type: ip.includes(':') ? 'udp6' : 'udp4', recvBufferSize: 1 << 20 });
    socket.bind(0, ip);
    await once(socket, 'listening');
    cleanups.add(() => socket.close());
    return new UDPClient(socket);
  }

  private constructor(socket: Datagrams) {
    this.#socket = socket;
  }

  send(to: Peer, data: string | Buffer): void {
    this.#socket.send(data, to.port, to.ip);
  }

  /** Sends, and resolves to the answer; rejects when none comes. */
  async ask(to: Peer, data: string | Buffer, patienceMs = 5_000): Promise<Buffer> {
    const answer = once(this.#socket, 'message', { signal: AbortSignal.timeout(patienceMs) });
    this.send(to, data);
    return (await answer)[0] as Buffer;
  }
}

/** Sends a text, closes the sending half, and returns everything received. */
export async function talk(to: Peer, text = ''): Promise<string> {
  const socket = connect({ host: to.ip, port: to.port, allowHalfOpen: true });
  socket.end(text);
  let heard = '';
  for await (const chunk of socket.setEncoding('utf8')) heard += chunk;
  return heard;
}

/** Returns how a silent connection ends: `end`, or the error's code. */
export async function fateOf(to: Peer): Promise<string> {
  const socket = connect({ host: to.ip, port: to.port });
  socket.resume();
  return new Promise((resolve) => {
    socket.on('end', () => resolve('end'));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
  });
}

/** An address where connections are neither accepted nor refused: a listener whose queue is full. */
export function blackHole(sockets: Sockets, cleanups: Cleanups): Peer {
  const fd = sockets.socket(AF_INET, SOCK_STREAM);
  const address = encodeAddress({ ip: '127.0.0.1', port: 0 });
  sockets.bind(fd, address);
  sockets.listen(fd, 0);
  sockets.getsockname(fd, address);
  const port = ((address[2] ?? 0) << 8) | (address[3] ?? 0);
  const fillers = Array.from({ length: 4 }, () => {
    const filler = sockets.socket(AF_INET, SOCK_STREAM);
    sockets.connect(filler, address);
    return filler;
  });
  cleanups.add(() => {
    for (const each of [fd, ...fillers]) sockets.close(each);
  });
  return { ip: '127.0.0.1', port };
}
