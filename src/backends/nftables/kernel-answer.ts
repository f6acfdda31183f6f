import type { NftClient } from '../../kernel/nft/client.ts';
import type { Element, Rule } from '../../kernel/nft/objects.ts';
import type { FirstPacket, Step } from '../../kernel/nft/walk/packet-state.ts';
import { type Ending, type WalkedTable, walkTable } from '../../kernel/nft/walk/table-walk.ts';
import { type Family, formatIP, isLoopback, joinHostPort } from '../../model/ip.ts';
import type { Fate, KernelAnswer, Packet, Target } from '../inspection.ts';
import { addressBytes, fromArray, protocolBytes, toArray } from './bytes.ts';
import { describeElement, describeKey } from './describe.ts';
import { decodeKey, decodeValue } from './element-codec.ts';
import { isSetName, tableOf } from './layout.ts';

/** Attempts at an answer during which nobody changes the ruleset; the last one counts as it is. */
const maxAttempts = 5;

/**
 * What the table does with a packet: its rules are read and followed, and of its maps the elements that the packet
 * would find.
 */
export async function answerOf(
  packet: Packet,
  client: NftClient,
  family: Family,
  ownAddresses: readonly string[],
): Promise<KernelAnswer> {
  for (let attempt = 1; ; attempt++) {
    const { id } = await client.generation();
    const answer = await askOnce(packet, client, family, ownAddresses);
    if (attempt === maxAttempts || (await client.generation()).id === id) return answer;
  }
}

async function askOnce(
  packet: Packet,
  client: NftClient,
  family: Family,
  ownAddresses: readonly string[],
): Promise<KernelAnswer> {
  const { family: nftFamily, name } = tableOf(family);
  const table = await readTable(client, family, ownAddresses);
  if (table.chains.length === 0) {
    return { fate: { action: 'pass' }, evidence: [`table ${nftFamily} ${name} is not there, or empty`] };
  }
  const endings = await walkTable(firstPacketOf(packet), table);
  return { fate: fateOf(endings, family), evidence: evidenceOf(endings, family) };
}

async function readTable(
  client: NftClient,
  family: Family,
  ownAddresses: readonly string[],
): Promise<WalkedTable> {
  const ref = tableOf(family);
  const [chains, rules, sets] = [
    await client.listChains(ref),
    await client.listRules(ref),
    await client.listSets(ref),
  ];
  const rulesByChain: Map<string, Rule[]> = Map.groupBy(rules, ({ chain }) => chain.name);
  const keyLengths = new Map(sets.map(({ name, keyLength }) => [name, keyLength]));
  const own = new Set(ownAddresses.map((address) => addressBytes(address)));
  const found = new Map<string, Element | undefined>();
  return {
    chains,
    rulesOf: (chain) => rulesByChain.get(chain) ?? [],
    keyLengthOf: (set) => keyLengths.get(set) ?? 0,
    isLocal: (address) => own.has(fromArray(address)) || isLoopback({ family, bytes: address }),
    find: async (set, key) => {
      const place = `${set} ${fromArray(key)}`;
      if (!found.has(place)) found.set(place, await client.getElement({ table: ref, name: set }, key));
      return found.get(place);
    },
  };
}

function firstPacketOf({ source, destination, protocol, port, origin }: Packet): FirstPacket {
  const bytes = (ip: string): Uint8Array => toArray(addressBytes(ip));
  return {
    protocol: protocolBytes(protocol).charCodeAt(0),
    source: bytes(source),
    destination: bytes(destination),
    port,
    input: origin === 'node' ? undefined : origin.interface,
  };
}

/**
 * One fate of all endings. They agree in a table that is as it should be; where they do not, forwarding counts, with
 * probabilities that miss what comes to another end.
 */
function fateOf(endings: readonly Ending[], family: Family): Fate {
  const targets = new Map<string, Target>();
  let rememberedMs = 0;
  for (const { state, action } of endings) {
    if (action !== 'accept' || !state.isRewritten) continue;
    const endpoint = joinHostPort(formatIP({ family, bytes: state.destination }), state.port);
    const known = targets.get(endpoint);
    targets.set(endpoint, {
      endpoint,
      probability: (known?.probability ?? 0) + state.probability,
      masquerade: state.isMasqueraded,
    });
    rememberedMs = Math.max(rememberedMs, state.rememberedMs);
  }
  if (targets.size > 0) {
    const sorted = [...targets.values()].sort((a, b) => (a.endpoint < b.endpoint ? -1 : 1));
    return { action: 'forward', targets: sorted, affinitySeconds: rememberedMs / 1000 };
  }
  const refusals = endings.flatMap(({ action }) => (action === 'accept' ? [] : action));
  return { action: refusals[0] ?? 'pass' };
}

/** What led to the endings, each thing once; what several have in common first, then that of one beside the other's. */
function evidenceOf(endings: readonly Ending[], family: Family): string[] {
  const lines = new Set<string>();
  const trails = endings.map(({ state }) =>
    state.steps().flatMap((step) => describeStep(step, family) ?? []),
  );
  const longest = trails.reduce((most, { length }) => Math.max(most, length), 0);
  for (let at = 0; at < longest; at++) {
    for (const trail of trails) {
      const line = trail[at];
      if (line !== undefined) lines.add(line);
    }
  }
  return [...lines];
}

function describeStep(step: Step, family: Family): string | undefined {
  switch (step.kind) {
    case 'chain':
      return undefined;
    case 'statement':
      return `chain ${step.chain}: ${step.text}`;
    case 'missing':
      return `missing: ${isSetName(step.set) ? describeKey(family, step.set, fromArray(step.key)) : step.set}`;
    case 'element':
      return isSetName(step.set)
        ? describeElement(family, step.set, decodeKey(step.element), decodeValue(step.element))
        : `${step.set} 0x${Buffer.from(step.element.key).toString('hex')}`;
  }
}
