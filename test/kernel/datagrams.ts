import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Below all ports that the kernel chooses itself. */
let lastPort = 20_000;

/**
 * Sends IPv4 datagrams, each a flow of its own. Left to the kernel, a source port may be one whose flow it still knows:
 * what counts flows then counts one too few.
 */
export async function sendDatagrams(count: number, address: string, port: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const socket = createSocket('udp4').bind(++lastPort);
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
