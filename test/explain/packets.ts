import fc from 'fast-check';
import type { Family } from '../../src/model/ip.ts';
import { type AddressBook, addressBooks, type HostName } from '../contract/address-book.ts';
import { type NumberedService, nodePortOf, podPort, servicePortOf } from '../contract/objects.ts';

/** A packet to ask about and to send. */
export interface TestPacket {
  readonly family: Family;
  /** The sender; `node` is a process on the node itself. */
  readonly host: HostName | 'node';
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly transport: 'tcp' | 'udp';
}

/** Pods here and elsewhere, some of them endpoints; clients of three kinds; the node. */
const senders = ['pod', 'A', 'remote', 'B', 'client', 'stranger', 'tenant', 'node'] as const;
type Sender = (typeof senders)[number];

/** `other port`: a port of a cluster IP that no service has. `pod`: an endpoint's own address. */
const targets = [
  ...(['clusterIP', 'external', 'loadBalancer', 'nodePort'] as const),
  ...(['second', 'loopback', 'unallocated', 'other port', 'pod'] as const),
] as const;
type Target = (typeof targets)[number];

const frontends: readonly Target[] = ['clusterIP', 'external', 'loadBalancer', 'nodePort'];

/** Any packet to one of these services or to an address without a service; most go to a frontend. */
export function randomPacket(
  families: readonly Family[],
  services: readonly NumberedService[],
): fc.Arbitrary<TestPacket> {
  return fc
    .record({
      family: fc.constantFrom(...families),
      sender: fc.constantFrom(...senders),
      service: fc.constantFrom(...services),
      target: fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...frontends) },
        { weight: 1, arbitrary: fc.constantFrom(...targets) },
      ),
      transport: fc.constantFrom('tcp' as const, 'udp' as const),
    })
    .map(({ family, sender, service, target, transport }) => {
      const book = addressBooks[family];
      // Only the node itself can send to a loopback address.
      const from = target === 'loopback' ? 'node' : sender;
      const { host, source } = senderOf(from, book);
      const [destination, port] = destinationOf(target, service, book);
      return {
        family,
        host,
        source: target === 'loopback' ? book.loopback : source,
        destination,
        port,
        transport,
      };
    });
}

/** Packets that no source range allows: among random packets there are too few. */
export function forbiddenPackets(
  families: readonly Family[],
  services: readonly NumberedService[],
): readonly TestPacket[] {
  const service = services.find(
    ({ spec: { ranges, loadBalancer } }) => ranges?.join() === 'clients' && loadBalancer,
  );
  if (!service) throw new Error('no service has source ranges');
  return families.map((family) => {
    const book = addressBooks[family];
    const [destination, port] = destinationOf('loadBalancer', service, book);
    return { family, ...senderOf('stranger', book), destination, port, transport: 'tcp' };
  });
}

/** Packets to node ports at loopback addresses: among random packets there are too few. */
export function loopbackPackets(
  families: readonly Family[],
  services: readonly NumberedService[],
): readonly TestPacket[] {
  const reached = services.filter(({ spec: { nodePort, families: only } }) => nodePort && !only);
  return families.flatMap((family) =>
    reached.slice(0, 12).map((service): TestPacket => {
      const { loopback } = addressBooks[family];
      const [destination, port] = destinationOf('loopback', service, addressBooks[family]);
      return { family, host: 'node', source: loopback, destination, port, transport: 'tcp' };
    }),
  );
}

export function senderOf(sender: Sender, book: AddressBook): Pick<TestPacket, 'host' | 'source'> {
  switch (sender) {
    case 'client':
    case 'stranger':
    case 'tenant':
      return { host: 'outside', source: book.clients[sender] };
    case 'node':
      // Not the address used for masquerading, so that the receiver sees whether the packet was masqueraded.
      return { host: 'node', source: book.nodeSecond };
    default:
      return { host: sender, source: book.hosts[sender] };
  }
}

export function destinationOf(
  target: Target,
  { n, spec }: NumberedService,
  book: AddressBook,
): readonly [address: string, port: number] {
  const port = servicePortOf(spec);
  switch (target) {
    case 'clusterIP':
    case 'external':
    case 'loadBalancer':
      return [book.service(n)[target], port];
    case 'nodePort':
      return [book.node, nodePortOf(n)];
    case 'second':
      return [book.nodeSecond, nodePortOf(n)];
    case 'loopback':
      return [book.loopback, nodePortOf(n)];
    case 'unallocated':
      return [book.unallocated, port];
    case 'other port':
      return [book.service(n).clusterIP, port === 80 ? 81 : 80];
    case 'pod':
      return [book.hosts.D, podPort];
  }
}
