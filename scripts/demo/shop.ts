import { systemClock } from '../../src/lib/clock.ts';
import { createIntern } from '../../src/lib/intern.ts';
import { familyOf, joinHostPort } from '../../src/model/ip.ts';
import { nodeIPs } from '../../src/model/node-ips.ts';
import type { EndpointSliceObject, ServiceObject, ServicePortObject } from '../../src/model/objects.ts';
import { printProblem } from '../../src/sources/manifests/documents.ts';
import { ManifestFiles } from '../../src/sources/manifests/files.ts';
import { mergeContents, type ObjectState } from '../../src/sources/manifests/merge.ts';

/** An address that clients of a service use. */
export interface Frontend {
  /** For people. */
  readonly title: string;
  /** As the proxy names it: `10.96.0.10:80/TCP`, `:30080/TCP`. */
  readonly name: string;
  /** `host:port`. */
  readonly address: string;
  readonly protocol: string;
  /** `namespace/name`. */
  readonly service: string;
}

export interface Endpoint {
  readonly ip: string;
  readonly port: number;
  readonly protocol: string;
  /** `namespace/name`. */
  readonly service: string;
}

/** The node that the proxy runs as, and its addresses in the manifests. */
export interface DemoNode {
  readonly name: string;
  readonly ips: readonly string[];
}

const defaultNode = 'node-1';
const nothing: ObjectState = {
  nodes: new Map(),
  serviceCIDRs: new Map(),
  services: new Map(),
  endpointSlices: new Map(),
};

/** The current content of the manifests: the services to ask and the endpoints that should answer. */
export class Shop {
  readonly #files: ManifestFiles;
  readonly #nodeName: string;
  #objects = nothing;

  /**
   * Reads the manifests. Without `node`, the node is node-1, or that of the first endpoint when there is no such Node.
   * Rejects with an error for the user when a file cannot be read or used, or when there is no Service to serve.
   */
  static async open(path: string, node?: string): Promise<Shop> {
    const shop = await Shop.#openAs(path, node ?? defaultNode);
    const other = node === undefined && shop.node().ips.length === 0 ? shop.#nodeOfEndpoints() : undefined;
    return other === undefined ? shop : Shop.#openAs(path, other);
  }

  static async #openAs(path: string, nodeName: string): Promise<Shop> {
    const shop = new Shop(path, nodeName);
    await shop.refresh();
    shop.#requireServices(path);
    return shop;
  }

  private constructor(path: string, nodeName: string) {
    this.#files = new ManifestFiles(path, { intern: createIntern(), nodeName, clock: systemClock });
    this.#nodeName = nodeName;
  }

  /** Reads the files again. Faulty objects and files keep their last form; the proxy reports them. */
  async refresh(): Promise<void> {
    await this.#files.refresh(true);
    this.#objects = mergeContents(this.#files.contents(), this.#nodeName, this.#objects).state;
  }

  node(): DemoNode {
    const node = this.#objects.nodes.get(this.#nodeName);
    return { name: this.#nodeName, ips: node ? nodeIPs(node) : [] };
  }

  /** Node ports are asked at these addresses. */
  frontends(nodeAddresses: readonly string[]): Frontend[] {
    const services = [...this.#objects.services.values()];
    const namespaces = new Set(services.map(({ namespace }) => namespace));
    return services.flatMap((service) => {
      const prefix = namespaces.size > 1 ? `${service.namespace}/` : '';
      return frontendsOf(service, prefix, nodeAddresses);
    });
  }

  endpoints(): Endpoint[] {
    return [...this.#objects.endpointSlices.values()].flatMap(endpointsOf);
  }

  #nodeOfEndpoints(): string | undefined {
    const slices = [...this.#objects.endpointSlices.values()];
    return slices.flatMap(({ endpoints }) => endpoints.map(({ nodeName }) => nodeName)).find(Boolean);
  }

  #requireServices(path: string): void {
    const { pathProblem } = this.#files;
    if (pathProblem) throw new Error(`cannot read manifests at ${path}: ${pathProblem.message}`);
    const [problem, ...more] = this.#files.problems();
    if (problem) {
      throw new Error(printProblem(problem) + (more.length > 0 ? ` (and ${more.length} more problems)` : ''));
    }
    if (this.#objects.services.size > 0) return;
    const unused = this.#files.contents().flatMap(([, content]) => content.unused);
    const found = unused.length > 0 ? ` can be served; it has ${unused.join(', ')}` : '';
    throw new Error(`no Service in ${path}${found}`);
  }
}

function frontendsOf(service: ServiceObject, prefix: string, nodeAddresses: readonly string[]): Frontend[] {
  const { namespace, name, type, ports, clusterIPs } = service;
  if (type === 'ExternalName') return [];
  const families = new Set(clusterIPs.map(familyOf));
  const loadBalancerIPs = service.loadBalancerIngress.flatMap(({ ip }) => (ip === '' ? [] : [ip]));
  const kinds = [
    ['cluster IP', clusterIPs],
    ['external IP', service.externalIPs],
    ['load balancer', loadBalancerIPs],
  ] as const;
  const nodeIPsOfService = nodeAddresses.filter((ip) => families.has(familyOf(ip)));
  return ports.flatMap(({ port, nodePort, protocol, name: portName }: ServicePortObject) => {
    const title = `${prefix}${name}${ports.length > 1 ? `:${portName}` : ''}`;
    const common = { protocol, service: `${namespace}/${name}` };
    const own = kinds.flatMap(([kind, ips]) =>
      ips.map((ip) => {
        const address = joinHostPort(ip, port);
        return { title: `${title}, ${kind}`, name: `${address}/${protocol}`, address, ...common };
      }),
    );
    const atNode = nodeIPsOfService.map((ip) => ({
      title: `${title}, node port`,
      name: `:${nodePort}/${protocol}`,
      address: joinHostPort(ip, nodePort),
      ...common,
    }));
    return nodePort === 0 ? own : [...own, ...atNode];
  });
}

function endpointsOf({ namespace, serviceName, endpoints, ports }: EndpointSliceObject): Endpoint[] {
  const service = `${namespace}/${serviceName}`;
  return endpoints.flatMap(({ address: ip }) =>
    ports.flatMap(({ port, protocol }) =>
      ip === undefined || port === undefined ? [] : [{ ip, port, protocol, service }],
    ),
  );
}
