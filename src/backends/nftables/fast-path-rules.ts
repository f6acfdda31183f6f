import { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import { describeRules } from '../../kernel/nft/describe-rule.ts';
import type { Expr } from '../../kernel/nft/expr.ts';
import { word } from '../../kernel/nft/fields.ts';
import type { Chain, Flowtable, Rule } from '../../kernel/nft/objects.ts';
import { protocolNumbers } from '../../kernel/numbers.ts';
import { inGroups } from '../../lib/groups.ts';
import type { FastPathSettings } from '../../model/fast-path.ts';
import type { Family } from '../../model/ip.ts';
import { hasBit, isOriginalDirection, type RuleBody } from '../nft-fields.ts';
import { base, type ChainBody } from './fixed-chains.ts';
import { tableComment, tableOf } from './layout.ts';
import { isAttachedAs } from './structure.ts';

const flowtableName = 'fast-path';

/** Upstream deletes chains with a slash in their name that it does not know, and so ends the fast path when it takes over. */
export const fastPathChain = 'fast-path/forward';

/** After the chains of other programs: a packet that one of them drops must not take its connection to the fast path. */
const chainPriority = 1000;
const ingressPriority = 0;

/** Bits of conntrack's state and status. */
const stateEstablished = 1 << 1;
const statusAssured = 1 << 2;
const statusDnat = 1 << 5;

/** The kernel takes 256 devices in one operation. */
const devicesPerOperation = 128;

/** What the kernel holds of the fast path of one family. */
export interface HeldFastPath {
  readonly flowtable?: Flowtable | undefined;
  readonly chain?: Chain | undefined;
  /** Of the chain. */
  readonly rules: readonly Rule[];
}

/** What the kernel is to hold. */
export interface WantedFastPath extends FastPathSettings {
  readonly family: Family;
  readonly devices: readonly string[];
}

export async function readFastPath(client: NftClient, family: Family): Promise<HeldFastPath> {
  const table = tableOf(family);
  const [flowtables, chains] = [await client.listFlowtables(table), await client.listChains(table)];
  const chain = chains.find(({ name }) => name === fastPathChain);
  return {
    flowtable: flowtables.find(({ name }) => name === flowtableName),
    chain,
    rules: chain ? await client.listRules(table, fastPathChain) : [],
  };
}

export function flowtableOf(family: Family, devices: readonly string[] = []): Flowtable {
  return {
    table: tableOf(family),
    name: flowtableName,
    priority: ingressPriority,
    devices,
    isCounted: true,
  };
}

/**
 * The chain that puts connections into the flowtable. Only packets of clients do: those of a departed endpoint must not
 * bring its connections back. The kernel itself takes only TCP and UDP among the protocols from 6 to 17. What most packets of
 * short connections fail comes first.
 */
export function fastPathBody({ scope, after }: FastPathSettings): ChainBody {
  const status: Expr = { kind: 'ct', key: 'status', dreg: 0 };
  const rule: RuleBody = [
    ...isOriginalDirection,
    ...(scope === 'services' ? hasBits(status, statusAssured | statusDnat) : hasBit(status, statusAssured)),
    { kind: 'ct', key: 'packets', dreg: 0 },
    { kind: 'byteorder', op: 'hton', sreg: 0, dreg: 0, length: 8, size: 8 },
    { kind: 'cmp', op: 'gt', sreg: 0, value: bigEndian(after) },
    ...hasBit({ kind: 'ct', key: 'state', dreg: 0 }, stateEstablished),
    { kind: 'meta', key: 'l4proto', dreg: 0 },
    { kind: 'cmp', op: 'gte', sreg: 0, value: Uint8Array.of(protocolNumbers.TCP) },
    { kind: 'cmp', op: 'lte', sreg: 0, value: Uint8Array.of(protocolNumbers.UDP) },
    { kind: 'flow_offload', flowtable: flowtableName },
  ];
  return base(fastPathChain, 'filter', 'forward', chainPriority, [rule]);
}

/**
 * The transaction that makes the kernel hold what is wanted; without operations when it does. With `anew`, all
 * connections leave the fast path, and come back with a later packet of their client.
 */
export function fastPathChange(held: HeldFastPath, wanted: WantedFastPath, anew = false): NftBatch {
  const batch = new NftBatch();
  const keepsFlowtable = held.flowtable?.priority === ingressPriority && !anew;
  const body = fastPathBody(wanted);
  const keepsChain = keepsFlowtable && isWanted(held, body);
  removeHeld(batch, {
    chain: keepsChain ? undefined : held.chain,
    flowtable: keepsFlowtable ? undefined : held.flowtable,
  });
  changeDevices(batch, keepsFlowtable ? held.flowtable : undefined, wanted);
  if (!keepsChain) addChain(batch, wanted.family, body);
  return batch;
}

/** A transaction to check whether the kernel knows all that the fast path needs. */
export function fastPathProbe(family: Family, settings: FastPathSettings): NftBatch {
  const batch = new NftBatch().add('table', { ...tableOf(family), comment: tableComment });
  batch.add('flowtable', flowtableOf(family));
  addChain(batch, family, fastPathBody(settings));
  return batch;
}

/** The transaction that removes what is there. */
export function fastPathRemoval(held: HeldFastPath): NftBatch {
  const batch = new NftBatch();
  removeHeld(batch, held);
  return batch;
}

/** Whether the chain is as wanted. */
export function isWanted({ chain, rules }: HeldFastPath, body: ChainBody): boolean {
  if (!chain || !isAttachedAs(chain, body)) return false;
  return describeRules(rules) === describeRules(body.rules.map((exprs) => ({ exprs })));
}

function removeHeld(batch: NftBatch, { chain, flowtable }: Omit<HeldFastPath, 'rules'>): void {
  if (chain) batch.flush('chain', chain).delete('chain', { table: chain.table, name: chain.name });
  if (flowtable) batch.delete('flowtable', { table: flowtable.table, name: flowtable.name });
}

function changeDevices(batch: NftBatch, held: Flowtable | undefined, wanted: WantedFastPath): void {
  const { family, devices } = wanted;
  if (!held?.isCounted) batch.add('flowtable', flowtableOf(family));
  const missing = devices.filter((device) => !held?.devices.includes(device));
  for (const group of inGroups(missing, devicesPerOperation)) {
    batch.add('flowtable', flowtableOf(family, group));
  }
  // Kernels from 6.16 on keep the names of devices that are gone.
  const surplus = held?.devices.filter((device) => !devices.includes(device)) ?? [];
  for (const group of inGroups(surplus, devicesPerOperation)) {
    batch.delete('flowtable', flowtableOf(family, group));
  }
}

function addChain(batch: NftBatch, family: Family, { name, base, rules }: ChainBody): void {
  const chain = { table: tableOf(family), name };
  batch.add('chain', base ? { ...chain, base } : chain);
  for (const exprs of rules) batch.add('rule', { chain, exprs });
}

/** All of these bits are set in what is loaded into register 0. */
function hasBits(load: Expr, bits: number): RuleBody {
  return [
    load,
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(bits), xor: word(0) },
    { kind: 'cmp', op: 'eq', sreg: 0, value: word(bits) },
  ];
}

function bigEndian(number: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return bytes;
}
