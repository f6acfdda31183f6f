import { addressAfter, familyOf, toIP } from '../../../model/ip.ts';
import { nodePortIPs } from '../../../model/node-port-addresses.ts';
import { mergeRanges } from '../../../plan/source-ranges.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { PortalElement } from './elements.ts';

/** Elements that belong to no service: unallocated cluster IPs, and where node ports are served. */
export function nodeElements(
  serviceCIDRs: readonly string[],
  interfaceAddresses: readonly string[],
  { family, nodePortAddresses }: UserspaceSettings,
): PortalElement[] {
  const elements: PortalElement[] = [];
  for (const { first, last } of mergeRanges(serviceCIDRs)) {
    elements.push({ set: 'service-ranges', element: { key: first } });
    const behind = addressAfter(last);
    if (behind) elements.push({ set: 'service-ranges', element: { key: behind, intervalEnd: true } });
  }
  if (nodePortAddresses.matchAll) return elements;
  for (const ip of nodePortIPs(nodePortAddresses, interfaceAddresses)) {
    if (familyOf(ip) === family) elements.push({ set: 'node-addresses', element: { key: toIP(ip).bytes } });
  }
  return elements;
}
