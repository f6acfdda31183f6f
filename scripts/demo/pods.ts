import { createSocket } from 'node:dgram';
import { createServer } from 'node:http';
import { isIPv6 } from 'node:net';
import { joinHostPort } from '../../src/model/ip.ts';
import type { Endpoint } from './shop.ts';
import type { Stage } from './stage.ts';

/** Stand-ins for pods: tiny web servers, and for UDP servers of datagrams. Each answers with its address. */
export class Pods {
  readonly #stage: Stage;
  readonly #started = new Set<string>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Starts a stand-in for every endpoint that has none yet, where the stage can have one. */
  async startAll(endpoints: readonly Endpoint[]): Promise<void> {
    const missing = new Map(
      endpoints
        .filter((endpoint) => this.#stage.canHold(endpoint.ip) && !this.#started.has(nameOf(endpoint)))
        .map((endpoint) => [nameOf(endpoint), endpoint]),
    );
    this.#stage.addAddresses([...missing.values()].map(({ ip }) => ip));
    for (const [name, endpoint] of missing) {
      this.#started.add(name);
      await start(endpoint).catch((error: Error) => {
        console.error(`No stand-in at ${name}: ${error.message}`);
      });
    }
  }
}

function nameOf({ ip, port, protocol }: Endpoint): string {
  return `${joinHostPort(ip, port)}/${protocol}`;
}

function start(endpoint: Endpoint): Promise<void> {
  if (endpoint.protocol === 'TCP') return startTCP(endpoint);
  return endpoint.protocol === 'UDP' ? startUDP(endpoint) : Promise.resolve();
}

function startTCP({ ip, port }: Endpoint): Promise<void> {
  return new Promise((settle, reject) => {
    const server = createServer((_request, response) => response.end(ip));
    server.on('error', reject).listen(port, ip, settle);
  });
}

function startUDP({ ip, port }: Endpoint): Promise<void> {
  return new Promise((settle, reject) => {
    const socket = createSocket(isIPv6(ip) ? 'udp6' : 'udp4');
    socket.on('message', (_message, from) => socket.send(ip, from.port, from.address));
    socket.on('error', reject).bind(port, ip, settle);
  });
}
