import type { NftClient } from '../kernel/nft/client.ts';
import { describeElement } from '../kernel/nft/describe-element.ts';
import type { Element, NftSet, TableRef } from '../kernel/nft/objects.ts';
import type { FirstPacket, Step } from '../kernel/nft/walk/packet-state.ts';
import { type Ending, type WalkedTable, walkTable } from '../kernel/nft/walk/table-walk.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import { type Family, formatIP, isLoopback, joinHostPort, toIP } from '../model/ip.ts';
import { fateOf, type PossibleFate } from './fate.ts';
import { boundTo, type FollowedPacket, type Packet } from './inspection.ts';

/** The table that a packet is asked about. */
export interface AskedTable {
  readonly client: NftClient;
  readonly table: TableRef;
  /** The declaration of one of our sets; undefined for sets that other programs added. */
  definitionOf(set: string): NftSet | undefined;
  /** Canonical addresses on the node's interfaces. */
  readonly addresses: readonly string[];
}

/** Of one set; more would be more than a reader wants to see. */
const maxElementsOfSet = 20;

/** Tries to read an unchanged ruleset this often; then takes what it read last. */
const maxAttempts = 5;

/**
 * Follows a packet through an nf_tables table: reads its rules and the elements that the packet would match. Rejects
 * with NotUnderstoodError at a rule whose meaning is unknown.
 */
export async function answerOf(packet: Packet, asked: AskedTable): Promise<FollowedPacket> {
  const { client } = asked;
  for (let attempt = 1; ; attempt++) {
    const { id } = await client.generation();
    const answer = await askOnce(packet, asked);
    if (attempt === maxAttempts || (await client.generation()).id === id) return answer;
  }
}

async function askOnce(packet: Packet, asked: AskedTable): Promise<FollowedPacket> {
  const { family, name } = asked.table;
  const table = await readTable(asked, packet.family);
  if (table.chains.length === 0) {
    return { fate: { action: 'pass' }, evidence: [`table ${family} ${name} is not there, or empty`] };
  }
  const endings = await walkTable(firstPacketOf(packet), table);
  const rememberedMs = endings.reduce((most, { state }) => Math.max(most, state.rememberedMs), 0);
  const outcomes = endings.map((ending) => outcomeOf(ending, packet.family));
  const { fate, notes } = fateOf(outcomes, rememberedMs / 1000);
  const [recalledMs] = endings.map(({ state }) => state.recalledMs);
  const secondsLeft = recalledMs === undefined ? undefined : recalledMs / 1000;
  return { fate, evidence: [...evidenceOf(endings, asked), ...notes], ...boundTo(fate, secondsLeft) };
}

async function readTable({ client, table, addresses }: AskedTable, family: Family): Promise<WalkedTable> {
  const chains = await client.listChains(table);
  const rules = Map.groupBy(await client.listRules(table), ({ chain }) => chain.name);
  const sets = await client.listSets(table);
  const keyLengths = new Map(sets.map(({ name, keyLength }) => [name, keyLength]));
  const own = new Set(addresses);
  const found = new Map<string, Element | undefined>();
  return {
    chains,
    rulesOf: (chain) => rules.get(chain) ?? [],
    keyLengthOf: (set) => keyLengths.get(set) ?? 0,
    isLocal: (bytes) => isLoopback({ family, bytes }) || own.has(formatIP({ family, bytes })),
    find: async (name, key) => {
      const place = `${name} ${key}`;
      if (!found.has(place)) found.set(place, await client.getElement({ table, name }, key));
      return found.get(place);
    },
  };
}

function firstPacketOf({ source, destination, protocol, port, origin }: Packet): FirstPacket {
  return {
    protocol: protocolNumbers[protocol],
    source: toIP(source).bytes,
    destination: toIP(destination).bytes,
    port,
    input: origin === 'node' ? undefined : origin.interface,
  };
}

function outcomeOf({ state, action }: Ending, family: Family): PossibleFate {
  const { probability, destination: bytes, port, isRewritten, isMasqueraded: masquerade } = state;
  if (action !== 'accept') return { probability, action };
  if (!isRewritten) return { probability, action: 'pass' };
  return {
    probability,
    action: 'forward',
    endpoint: joinHostPort(formatIP({ family, bytes }), port),
    masquerade,
  };
}

/**
 * What led to the endings, each thing once; what several have in common first, then that of one beside the other's. A hash
 * may lead to any of hundreds of elements: those beyond a few are counted.
 */
function evidenceOf(endings: readonly Ending[], asked: AskedTable): string[] {
  const lines = new Map<string, string>();
  const trails = endings.map(({ state }) =>
    state
      .steps()
      .map((step) => [describeStep(step, asked), step.kind === 'element' ? step.set : ''] as const),
  );
  const longest = trails.reduce((most, { length }) => Math.max(most, length), 0);
  for (let at = 0; at < longest; at++) {
    for (const trail of trails) {
      const line = trail[at];
      if (line) lines.set(...line);
    }
  }
  return shortened(lines);
}

/** The lines, of each set no more than a few. */
function shortened(lines: ReadonlyMap<string, string>): string[] {
  const seen = new Map<string, number>();
  const kept: string[] = [];
  for (const [line, set] of lines) {
    const count = (seen.get(set) ?? 0) + 1;
    seen.set(set, count);
    if (set === '' || count <= maxElementsOfSet) kept.push(line);
  }
  for (const [set, count] of seen) {
    if (set !== '' && count > maxElementsOfSet)
      kept.push(`# and ${count - maxElementsOfSet} more elements of ${set}`);
  }
  return kept;
}

function describeStep(step: Step, asked: AskedTable): string {
  switch (step.kind) {
    case 'statement':
      return `chain ${step.chain}: ${step.text}`;
    case 'missing':
      return `missing: ${elementText(step.set, { key: step.key }, asked)}`;
    case 'element':
      return elementText(step.set, step.element, asked);
  }
}

function elementText(set: string, element: Element, asked: AskedTable): string {
  const definition = asked.definitionOf(set);
  return definition
    ? describeElement(definition, element)
    : `${set} 0x${Buffer.from(element.key).toString('hex')}`;
}
