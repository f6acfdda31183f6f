import type { NftClient } from '../../kernel/nft/client.ts';
import { concatLength } from '../../kernel/nft/fields.ts';
import type { Chain, Element, SetInfo } from '../../kernel/nft/objects.ts';
import type { Family } from '../../model/ip.ts';
import { decodeKey, decodeValue } from './element-codec.ts';
import type { ElementMap } from './element-diff.ts';
import { isSetName, layoutStamp, type SetName, setDefinition, setRef, tableOf } from './layout.ts';

/** What the kernel holds of our table. */
export interface KernelState {
  /** `other`: left by upstream, by another layout, or no longer recognisable. */
  readonly table: 'absent' | 'ours' | 'other';
  readonly chains: ReadonlyMap<string, Chain>;
  readonly sets: ReadonlySet<SetName>;
  /**
   * Elements of the sets that were read. `clients` is incomplete: one element for each member that a record names,
   * under any key.
   */
  readonly elements: ElementMap;
}

const nothing = { chains: new Map<string, Chain>(), sets: new Set<SetName>(), elements: new Map() };

/**
 * Reads the table. Stops early at a table in another layout, which is replaced anyway. Skips the elements of the sets
 * in `unread`.
 */
export async function readKernelState(
  client: NftClient,
  family: Family,
  unread: ReadonlySet<SetName> = new Set(),
): Promise<KernelState> {
  const table = tableOf(family);
  if (!(await client.getTable(table))) return { ...nothing, table: 'absent' };
  const infos = await client.listSets(table);
  const isStamped = infos.some(({ name, comment }) => name === 'frontends' && comment === layoutStamp);
  const known = infos.filter(({ name }) => isSetName(name));
  if (!isStamped || !known.every((info) => hasOurShape(info, family))) return { ...nothing, table: 'other' };
  const chains = await client.listChains(table);
  const sets = new Set(known.map(({ name }) => name).filter(isSetName));
  const elements: ElementMap = new Map();
  for (const set of sets) {
    if (!unread.has(set)) elements.set(set, await readElements(client, family, set));
  }
  return { table: 'ours', chains: new Map(chains.map((chain) => [chain.name, chain])), sets, elements };
}

async function readElements(client: NftClient, family: Family, set: SetName): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  // There may be a million records, packets make new ones while they are read, and all that is asked of them is which
  // members they name.
  const isRecord = set === 'clients';
  const take = (elements: readonly Element[], restarted: boolean): void => {
    if (restarted) found.clear();
    for (const element of elements) {
      const value = decodeValue(element);
      found.set(isRecord ? value : decodeKey(element), value);
    }
  };
  await client.listElements(setRef(family, set), take, { isApproximate: isRecord });
  return found;
}

/** Another program may have created a set of the same name with another type. */
function hasOurShape(info: SetInfo, family: Family): boolean {
  if (!isSetName(info.name)) return false;
  const { key, data, flags = [] } = setDefinition(family, info.name);
  if (info.keyLength !== concatLength(key)) return false;
  if ((data === undefined) !== (info.dataType === undefined)) return false;
  if (Array.isArray(data) && info.dataLength !== concatLength(data)) return false;
  return (
    flags.every((flag) => info.flags.includes(flag)) &&
    info.flags.includes('interval') === flags.includes('interval')
  );
}
