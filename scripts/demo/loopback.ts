import { once } from 'node:events';
import type { Server } from 'node:net';

/** Listens at this port of 127.0.0.1 when it is free, else at another one. */
export async function listenAtLoopback(server: Server, wanted: number): Promise<void> {
  try {
    await once(server.listen(wanted, '127.0.0.1'), 'listening');
  } catch {
    await once(server.listen(0, '127.0.0.1'), 'listening');
  }
}
