import { systemClock } from '../../src/lib/clock.ts';
import { createIntern } from '../../src/lib/intern.ts';
import { joinHostPort } from '../../src/model/ip.ts';
import type { EndpointSliceObject, ServiceObject } from '../../src/model/objects.ts';
import { ManifestFiles } from '../../src/sources/manifests/files.ts';

/** An address that clients of a service use. */
export interface Frontend {
  /** For people. */
  readonly title: string;
  /** As the proxy names it: `10.96.0.10:80/TCP`, `:30080/TCP`. */
  readonly name: string;
  /** `host:port`. */
  readonly address: string;
}

export interface Endpoint {
  readonly ip: string;
  readonly port: number;
}

/** The current content of the manifests: the services to ask and the endpoints that should answer. Only TCP. */
export class Shop {
  readonly #files: ManifestFiles;

  /** Rejects when the path cannot be read. */
  static async open(path: string): Promise<Shop> {
    const shop = new Shop(path);
    await shop.refresh();
    const problem = shop.#files.pathProblem;
    if (problem) throw new Error(`cannot read manifests: ${problem.message}`);
    return shop;
  }

  private constructor(path: string) {
    this.#files = new ManifestFiles(path, { intern: createIntern(), nodeName: '', clock: systemClock });
  }

  /** Reads the files again. Faulty objects and files keep their last form; the proxy reports them. */
  async refresh(): Promise<void> {
    await this.#files.refresh(true);
  }

  frontends(nodeIP: string): Frontend[] {
    return this.#entries('services').flatMap((service) => frontendsOf(service, nodeIP));
  }

  endpoints(): Endpoint[] {
    return this.#entries('endpointSlices').flatMap(endpointsOf);
  }

  #entries<R extends 'services' | 'endpointSlices'>(resource: R) {
    return this.#files.contents().flatMap(([, { entries }]) => entries[resource].map(({ object }) => object));
  }
}

function frontendsOf({ name, clusterIPs, ports }: ServiceObject, nodeIP: string): Frontend[] {
  return ports
    .filter(({ protocol }) => protocol === 'TCP')
    .flatMap(({ port, nodePort }) => {
      const frontends = clusterIPs.map((ip) => {
        const address = joinHostPort(ip, port);
        return { title: `${name}, cluster IP`, name: `${address}/TCP`, address };
      });
      const atNode = { title: `${name}, node port`, name: `:${nodePort}/TCP` };
      return nodePort === 0
        ? frontends
        : [...frontends, { ...atNode, address: joinHostPort(nodeIP, nodePort) }];
    });
}

function endpointsOf({ endpoints, ports }: EndpointSliceObject): Endpoint[] {
  return endpoints.flatMap(({ address: ip }) =>
    ports.flatMap(({ port, protocol }) =>
      ip === undefined || port === undefined || protocol !== 'TCP' ? [] : [{ ip, port }],
    ),
  );
}
