import type { Family } from '../../model/ip.ts';
import { isNew, PacketFields } from '../nft-fields.ts';
import { dispatchTo } from './expressions.ts';
import { base, type ChainBody } from './fixed-chains.ts';

/** Where packets arrive from elsewhere, and where those of this node's own processes start. */
const hooks = ['prerouting', 'output'] as const;

type GuardHook = (typeof hooks)[number];

const nameOf = (hook: GuardHook): string => `filter-${hook}-pre-dnat`;

/**
 * The base chains that check source ranges, with upstream's names. They exist only while a service port has source
 * ranges: every new connection of the node would pay for an empty check.
 */
export const guardChains: readonly string[] = hooks.map(nameOf);

/** The guard chain of this name; undefined when there is none. */
export function guardChain(name: string, family: Family): ChainBody | undefined {
  const hook = hooks.find((one) => nameOf(one) === name);
  const rule = [...isNew, ...new PacketFields(family).frontend(0), dispatchTo('guarded', 0)];
  return hook && base(name, 'filter', hook, -110, [rule]);
}
