import type { RawObject } from '../../test/cluster/apiserver/store.ts';
import { fullService, fullSlice } from '../../test/cluster/full-objects.ts';
import type { Size } from '../report/measurement.ts';
import type { ApiClient } from './client.ts';

const namespaces = 20;

/** Services and slices on an API server, each as a real controller writes it. */
export class WrittenCluster {
  readonly #client: ApiClient;
  readonly #size: Size;
  #generation = 1;

  constructor(client: ApiClient, size: Size) {
    this.#client = client;
    this.#size = size;
  }

  async fill(): Promise<void> {
    const { services } = this.#size;
    const isReal = (await this.#client.request('GET', '/version')).status === 200;
    if (isReal) {
      await this.#client.writeMany(namespaces, (i) =>
        this.#client.write('POST', '/api/v1/namespaces', { metadata: { name: `team-${i}` } }),
      );
    }
    await this.#client.writeMany(services, async (i) => {
      await this.#client.write('POST', path('services', i), fullService(named(i), address('10.97', i)));
      await this.#client.write('POST', path('endpointslices', i), this.#slice(i));
    });
  }

  async addNode(name: string, ip: string): Promise<void> {
    await this.#client.write('POST', '/api/v1/nodes', {
      metadata: { name },
      status: { addresses: [{ type: 'InternalIP', address: ip }] },
    });
  }

  /** Replaces the first endpoint of a slice, as after a pod was replaced. */
  async update(change: number): Promise<void> {
    const index = (change * 37) % this.#size.services;
    const { endpoints, metadata } = this.#slice(index, ++this.#generation);
    const { annotations } = metadata;
    const patch = { metadata: { annotations }, endpoints };
    await this.#client.write('PATCH', `${path('endpointslices', index)}/${metadata.name}`, patch);
  }

  #slice(index: number, generation = 1): RawObject {
    const { endpoints } = this.#size;
    const addresses = Array.from({ length: endpoints }, (_, i) => address('10.128', index * endpoints + i));
    if (generation > 1) addresses[0] = address('10.160', generation);
    return fullSlice({ ...named(index), addresses, generation });
  }
}

function named(index: number) {
  return { namespace: `team-${index % namespaces}`, name: `service-${index}`, number: index };
}

/** The address with this number in a range that begins with `network`. */
function address(network: string, number: number): string {
  const [first = 0, second = 0] = network.split('.').map(Number);
  return [first, second + (number >> 16), (number >> 8) & 255, number & 255].join('.');
}

function path(plural: 'services' | 'endpointslices', index: number): string {
  const group = plural === 'services' ? '/api/v1' : '/apis/discovery.k8s.io/v1';
  return `${group}/namespaces/${named(index).namespace}/${plural}`;
}
