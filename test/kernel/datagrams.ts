import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { nextSourcePort } from '../cluster/lab/source-port.ts';

/** Sends IPv4 datagrams, each as a separate flow. */
export async function sendDatagrams(count: number, address: string, port: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const socket = createSocket('udp4').bind(nextSourcePort());
    try {
      await once(socket, 'listening');
      await new Promise<void>((resolve, reject) => {
        socket.send('hello\n', port, address, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      socket.close();
    }
  }
}
