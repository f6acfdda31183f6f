import type { Packet } from '../backends/inspection.ts';
import { isOwnAddress, type NodeFacts } from '../backends/node-facts.ts';
import { canonicalIP, type Family, familyOf } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';

/** A question that cannot be answered; the message says what is wrong with it. */
export class QuestionError extends Error {}

/** A question about a packet. */
export interface Question {
  readonly family: Family;
  /** Canonical, or `node`: sent by the node itself, which chooses the address. */
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** The interface on which it arrives; undefined when not given. */
  readonly interface: string | undefined;
}

const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

export const questionParameters = ['source', 'destination', 'port', 'protocol', 'interface'] as const;

/** Reads `source`, `destination`, `port`, and optionally `protocol` (default TCP) and `interface`. */
export function readQuestion(read: (name: string) => string | null): Question {
  const destination = readAddress('destination', read('destination'));
  const family = familyOf(destination) ?? 'IPv4';
  const source = read('source') === 'node' ? 'node' : readAddress('source', read('source'));
  if (source !== 'node' && familyOf(source) !== family) {
    throw new QuestionError(`source ${source} and destination ${destination} are of different families`);
  }
  const name = read('interface') ?? undefined;
  if (source === 'node' && name !== undefined) {
    throw new QuestionError(
      `a packet that the node itself sends does not arrive on an interface, got ${name}`,
    );
  }
  return {
    family,
    source,
    destination,
    port: readPort(read('port')),
    protocol: readProtocol(read('protocol')),
    interface: name,
  };
}

/** The packet of a question on this node. `interfaceTowards` finds the interface that leads to an address. */
export async function packetOf(
  question: Question,
  node: NodeFacts,
  interfaceTowards: (address: string) => Promise<string>,
): Promise<Packet> {
  const { family, protocol, destination, port } = question;
  const source = question.source === 'node' ? ownSource(destination, node) : question.source;
  const origin =
    question.interface === undefined && (question.source === 'node' || isOwnAddress(source, node))
      ? 'node'
      : { interface: question.interface ?? (await interfaceTowards(source)) };
  return { family, protocol, source, destination, port, origin };
}

/** A packet to an address of the node itself has that address as its source, too. */
function ownSource(destination: string, node: NodeFacts): string {
  return isOwnAddress(destination, node) ? destination : node.nodeIP;
}

function readAddress(name: string, text: string | null): string {
  if (text === null || text === '') throw new QuestionError(`${name} is missing`);
  const address = canonicalIP(text);
  if (address === undefined) throw new QuestionError(`${name} ${JSON.stringify(text)} is not an IP address`);
  return address;
}

function readPort(text: string | null): number {
  if (text === null || text === '') throw new QuestionError('port is missing');
  const port = Number(text);
  if (!/^[0-9]+$/.test(text) || port < 1 || port > 65_535) {
    throw new QuestionError(`port ${JSON.stringify(text)} is not a number from 1 to 65535`);
  }
  return port;
}

function readProtocol(text: string | null): Protocol {
  const wanted = text === null || text === '' ? 'TCP' : text.toUpperCase();
  const protocol = protocols.find((known) => known === wanted);
  if (!protocol)
    throw new QuestionError(`protocol ${JSON.stringify(text)} is none of ${protocols.join(', ')}`);
  return protocol;
}
