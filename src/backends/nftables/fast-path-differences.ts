import { describeHook, describeRules } from '../../kernel/nft/describe-rule.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import type { Flowtable } from '../../kernel/nft/objects.ts';
import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Difference } from '../inspection.ts';
import { chooseDevices } from './fast-path-devices.ts';
import { fastPathBody, fastPathProbe, flowtableOf, readFastPath } from './fast-path-rules.ts';
import type { NftablesSettings } from './settings.ts';

/**
 * Lists what differs from the fast path that is asked for. What this kernel does not take is no difference: the status of
 * the proxy has the reason.
 */
export async function fastPathDifferences(
  { nft, links }: Pick<KernelInterfaces, 'nft' | 'links'>,
  { family, fastPath }: NftablesSettings,
): Promise<Difference[]> {
  if (!fastPath) return [];
  const held = await readFastPath(nft, family);
  const { devices } = chooseDevices(await links.listLinks());
  try {
    await nft.check(fastPathProbe(family, fastPath));
  } catch (error) {
    if (error instanceof NftError) return [];
    throw error;
  }
  const wanted = flowtableOf(family, devices);
  const body = fastPathBody(fastPath);
  const rules = body.rules.map((exprs) => ({ exprs }));
  const { flowtable, chain } = held;
  return [
    difference('flowtable', wanted.name, flowtableText(wanted), flowtable && flowtableText(flowtable)),
    difference('chain', body.name, describeHook(body.base), chain && describeHook(chain.base)),
    ...(chain ? [difference('rules', body.name, describeRules(rules), describeRules(held.rules))] : []),
  ].filter(({ wanted: should, found }) => should !== found);
}

function difference(kind: string, object: string, wanted: string, found: string | undefined): Difference {
  return { service: undefined, kind, object, wanted, found };
}

function flowtableText({ priority, devices, isCounted }: Flowtable): string {
  const counter = isCounted ? ', counter' : '';
  return `hook ingress priority ${priority}${counter}, devices ${devices.toSorted().join(', ')}`;
}
