import type { Wanted } from '../driver.ts';
import { addressBytes, type Bytes, portBytes } from './bytes.ts';
import { resettingChains } from './fixed-chains.ts';
import type { NftablesSettings } from './settings.ts';
import type { Structure } from './structure.ts';
import type { Transaction } from './transaction.ts';

/** Keys of the set `departed`, by `ip:port`. */
export type DepartedKeys = ReadonlyMap<string, Bytes>;

/** The keys that are wanted. Those that `known` has are not computed again. */
export function departedKeys({ departed }: Pick<Wanted, 'departed'>, known?: DepartedKeys): DepartedKeys {
  const keys = new Map<string, Bytes>();
  for (const [id, { ip, port }] of departed ?? []) {
    keys.set(id, known?.get(id) ?? addressBytes(ip) + portBytes(port));
  }
  return keys;
}

/**
 * Writes the difference between two lists. The set and the rule that looks into it exist only while the list is not
 * empty: otherwise no packet pays for them.
 */
export function writeDeparted(
  { sets }: Structure,
  before: DepartedKeys,
  after: DepartedKeys,
  settings: NftablesSettings,
  transaction: Transaction,
): void {
  if (after.size === 0) {
    if (sets.has('departed')) dropDeparted(sets, settings, transaction);
    return;
  }
  if (!sets.has('departed')) {
    transaction.addSet('departed');
    sets.add('departed');
    for (const chain of resettingChains(settings, true)) transaction.refillChain(chain);
  }
  for (const [id, key] of before) if (!after.has(id)) transaction.delete('departed', key);
  for (const [id, key] of after) if (!before.has(id)) transaction.add('departed', key, '');
}

function dropDeparted(sets: Structure['sets'], settings: NftablesSettings, transaction: Transaction): void {
  for (const chain of resettingChains(settings, false)) transaction.refillChain(chain);
  transaction.deleteSet('departed');
  sets.delete('departed');
}
