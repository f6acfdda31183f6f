import type { Wanted } from '../driver.ts';
import { addressBytes, type Bytes, portBytes } from './bytes.ts';
import { resettingChains } from './fixed-chains.ts';
import type { NftablesSettings } from './settings.ts';
import type { Structure } from './structure.ts';
import type { Transaction } from './transaction.ts';

/** Keys of the set `departed`, by `ip:port`. */
export type DepartedKeys = Map<string, Bytes>;

const none: NonNullable<Wanted['departed']> = new Map();

/** The keys that are wanted. */
export function departedKeys({ departed = none }: Pick<Wanted, 'departed'>): DepartedKeys {
  return new Map([...departed].map(([id, endpoint]) => [id, keyOf(endpoint)]));
}

/**
 * Writes what differs from `keys`, which it updates. The set and the rule that looks into it exist only while an endpoint
 * is in the list: otherwise no packet pays for them.
 */
export function writeDeparted(
  { sets }: Structure,
  keys: DepartedKeys,
  { departed = none }: Pick<Wanted, 'departed'>,
  settings: NftablesSettings,
  transaction: Transaction,
): void {
  if (departed.size === 0) {
    keys.clear();
    if (!sets.delete('departed')) return;
    for (const chain of resettingChains(settings, false)) transaction.refillChain(chain);
    transaction.deleteSet('departed');
    return;
  }
  if (!sets.has('departed')) {
    transaction.addSet('departed');
    sets.add('departed');
    for (const chain of resettingChains(settings, true)) transaction.refillChain(chain);
  }
  updateElements(keys, departed, transaction);
}

/** The list may be long while it changes little, so it is not copied. */
function updateElements(keys: DepartedKeys, departed: typeof none, transaction: Transaction): void {
  for (const [id, endpoint] of departed) {
    if (keys.has(id)) continue;
    const key = keyOf(endpoint);
    keys.set(id, key);
    transaction.add('departed', key, '');
  }
  if (keys.size === departed.size) return;
  for (const [id, key] of keys) {
    if (departed.has(id)) continue;
    keys.delete(id);
    transaction.delete('departed', key);
  }
}

function keyOf({ ip, port }: { readonly ip: string; readonly port: number }): Bytes {
  return addressBytes(ip) + portBytes(port);
}
