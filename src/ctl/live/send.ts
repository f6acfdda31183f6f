import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Family } from '../../model/ip.ts';

/** The result of the attempt, as the sender saw it. */
export type SendOutcome = 'answered' | 'refused' | 'unanswered' | 'sent';

/** A socket that sends the first packet of a connection. Its port is known before, so that a rule can match it. */
export interface Sender {
  readonly sourcePort: number;
  send(): Promise<SendOutcome>;
  close(): void;
}

const answerMs = 1_000;

export function openSender(
  protocol: 'TCP' | 'UDP',
  family: Family,
  destination: string,
  port: number,
): Promise<Sender> {
  return protocol === 'TCP' ? openTCP(family, destination, port) : openUDP(family, destination, port);
}

async function openTCP(family: Family, host: string, port: number): Promise<Sender> {
  const localPort = await freePort(family);
  return {
    sourcePort: localPort,
    send: () =>
      new Promise((resolve) => {
        const socket = connect({ host, port, localPort });
        const settle = (outcome: SendOutcome) => {
          socket.destroy();
          resolve(outcome);
        };
        socket.setTimeout(answerMs, () => settle('unanswered'));
        socket.on('connect', () => settle('answered')).on('error', () => settle('refused'));
      }),
    close() {},
  };
}

/** A port that is free now. Should another process take it at once, the attempt fails. */
async function freePort(family: Family): Promise<number> {
  const server = createServer().listen(0, family === 'IPv4' ? '0.0.0.0' : '::');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function openUDP(family: Family, host: string, port: number): Promise<Sender> {
  const socket = createSocket(family === 'IPv4' ? 'udp4' : 'udp6');
  // The error of a closed port says nothing about the way of the packet.
  socket.on('error', () => {});
  socket.bind(0);
  await once(socket, 'listening');
  return {
    sourcePort: socket.address().port,
    send: () =>
      new Promise((resolve) => {
        socket.send(new Uint8Array(), port, host, (error) => resolve(error ? 'refused' : 'sent'));
      }),
    close: () => socket.close(),
  };
}
