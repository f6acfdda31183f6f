import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { Capacity } from '../src/http/capacity.ts';
import type { RequestListener } from '../src/http/exchange.ts';
import { HttpServer } from '../src/http/server.ts';
import { systemClock } from '../src/lib/clock.ts';

/** Serves until the test ends, at a port of 127.0.0.1. */
export async function serveHttp(
  t: TestContext,
  listener: RequestListener,
  capacity = new Capacity(systemClock),
): Promise<{ readonly server: HttpServer; readonly port: number; readonly url: string }> {
  const server = new HttpServer(listener, capacity).listen(0, '127.0.0.1');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, port, url: `http://127.0.0.1:${port}` };
}
