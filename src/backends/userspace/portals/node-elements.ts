import { addressAfter, familyOf, toIP } from '../../../model/ip.ts';
import { nodePortIPs } from '../../../model/node-port-addresses.ts';
import { mergeRanges } from '../../../plan/source-ranges.ts';
import type { ReturnPorts } from '../return-ports.ts';
import type { UserspaceSettings } from '../settings.ts';
import { type PortalElement, portBytes, protocolByte } from './elements.ts';

/** Elements that belong to no service: unallocated cluster IPs, where node ports are served, and where answers go. */
export function nodeElements(
  serviceCIDRs: readonly string[],
  interfaceAddresses: readonly string[],
  { family, nodePortAddresses }: UserspaceSettings,
  returnPorts: ReturnPorts | undefined,
): PortalElement[] {
  const elements: PortalElement[] = [];
  for (const { first, last } of mergeRanges(serviceCIDRs)) {
    elements.push({ set: 'service-ranges', element: { key: first } });
    const behind = addressAfter(last);
    if (behind) elements.push({ set: 'service-ranges', element: { key: behind, intervalEnd: true } });
  }
  if (returnPorts) {
    for (const protocol of ['TCP', 'UDP'] as const) {
      const element = { key: protocolByte(protocol), data: portBytes(returnPorts[protocol]) };
      elements.push({ set: 'return-ports', element });
    }
  }
  if (nodePortAddresses.matchAll) return elements;
  for (const ip of nodePortIPs(nodePortAddresses, interfaceAddresses)) {
    if (familyOf(ip) === family) elements.push({ set: 'node-addresses', element: { key: toIP(ip).bytes } });
  }
  return elements;
}
