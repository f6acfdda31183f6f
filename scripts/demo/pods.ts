import { createServer } from 'node:http';
import { isLoopback, joinHostPort, parseIP } from '../../src/model/ip.ts';
import type { Endpoint } from './shop.ts';

/** Tiny web servers in place of pods. Each answers with its address. */
export class Pods {
  readonly #started = new Set<string>();

  /**
   * Starts one for every endpoint that has none yet. Only at loopback addresses: others may belong to real servers, and
   * other machines must not reach these.
   */
  async startAll(endpoints: readonly Endpoint[]): Promise<void> {
    for (const endpoint of endpoints) {
      const name = joinHostPort(endpoint.ip, endpoint.port);
      const ip = parseIP(endpoint.ip);
      if (!ip || !isLoopback(ip) || this.#started.has(name)) continue;
      this.#started.add(name);
      await start(endpoint).catch((error: Error) => console.error(`No pod at ${name}: ${error.message}`));
    }
  }
}

function start({ ip, port }: Endpoint): Promise<void> {
  return new Promise((settle, reject) => {
    const server = createServer((_request, response) => response.end(ip));
    server.on('error', reject).listen(port, ip, settle);
  });
}
