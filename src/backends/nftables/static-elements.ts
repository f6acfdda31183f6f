import { addressAfter, isLoopback, parseIP } from '../../model/ip.ts';
import { nodePortIPs } from '../../model/node-port-addresses.ts';
import { mergeRanges } from '../../plan/source-ranges.ts';
import type { Wanted } from '../driver.ts';
import { addressBytes, fromArray } from './bytes.ts';
import type { Emit } from './compile.ts';
import { intervalEnd } from './element-codec.ts';
import type { SetName } from './layout.ts';
import type { NftablesSettings } from './settings.ts';

/** What elements depend on besides services and settings. */
type AddressFacts = Pick<Wanted, 'serviceCIDRs' | 'addresses'>;

/** Sets whose elements belong to no service. */
export const staticSets = ['service-ranges', 'node-addresses'] as const satisfies readonly SetName[];

/** The elements of those. */
export function staticElements(facts: AddressFacts, settings: NftablesSettings, emit: Emit): void {
  for (const { first, last } of mergeRanges(facts.serviceCIDRs)) {
    emit('service-ranges', fromArray(first), '');
    const behind = addressAfter(last);
    if (behind !== undefined) emit('service-ranges', intervalEnd(fromArray(behind)), '');
  }
  for (const address of nodeAddresses(facts, settings)) emit('node-addresses', addressBytes(address), '');
}

/** Addresses that node ports are served on; none when any will do. */
function nodeAddresses({ addresses }: AddressFacts, settings: NftablesSettings): string[] {
  if (settings.nodePortAddresses.matchAll) return [];
  return nodePortIPs(settings.nodePortAddresses, addresses).filter((text) => {
    const ip = parseIP(text);
    return ip !== undefined && ip.family === settings.family && !isLoopback(ip);
  });
}
