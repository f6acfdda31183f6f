import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { ask } from '../../scripts/demo/requests.ts';
import { run } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';

const podAddresses = ['127.0.1.11', '127.0.1.12', '127.0.1.13'];

/** The address of service `web` of examples/shop. */
export const webAddress = '10.96.0.10:8080';

/** Web servers at the addresses of the endpoints in examples/shop, each answering with its address. */
export class DemoPods {
  readonly #servers: Server[] = [];

  async start(): Promise<void> {
    for (const address of podAddresses) {
      const server = createServer((_request, response) => response.end(address));
      this.#servers.push(server);
      await new Promise<void>((settle, reject) => {
        server.on('error', reject).listen(9376, address, settle);
      });
    }
  }

  stop(): void {
    for (const server of this.#servers.splice(0)) server.close();
  }
}

/** Makes the network namespace of this process a node, with a route to service addresses. */
export function becomeNode(): void {
  run('ip', 'address', 'add', '192.0.2.1/32', 'dev', 'lo');
  run('ip', 'route', 'add', 'default', 'dev', 'lo', 'src', '192.0.2.1');
}

/** Waits until a pod answers at an address; the error of a time-out has the log of the proxy. */
export async function assertAnswered(
  address: string,
  proxy: { readonly isRunning: boolean; readonly log: string },
): Promise<void> {
  let answer = '';
  const isAnswered = async () => {
    answer = await ask(address).catch(() => '');
    if (answer === '' && !proxy.isRunning) throw new Error(`the proxy has ended:\n${proxy.log}`);
    return answer !== '';
  };
  await eventually(`${address} answers`, isAnswered, { everyMs: 20, onTimeout: () => proxy.log });
  assert.ok(podAddresses.includes(answer), `${address}: ${answer}\n${proxy.log}`);
}
