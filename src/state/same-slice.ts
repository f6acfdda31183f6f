import type { EndpointObject, EndpointSliceObject, SlicePortObject } from '../model/objects.ts';
import { sameStrings } from '../model/same-strings.ts';

/**
 * Whether two slices come from the same write. A write counts as a change even if it touches only fields that are not
 * decoded. The contents are compared as well because not every source has resource versions.
 */
export function sameSlice(a: EndpointSliceObject, b: EndpointSliceObject): boolean {
  if (a === b) return true;
  return (
    a.resourceVersion === b.resourceVersion &&
    a.serviceName === b.serviceName &&
    a.addressType === b.addressType &&
    a.triggerTime === b.triggerTime &&
    a.endpoints.length === b.endpoints.length &&
    a.ports.length === b.ports.length &&
    a.ports.every((port, i) => samePort(port, b.ports[i])) &&
    a.endpoints.every((endpoint, i) => sameEndpointObject(endpoint, b.endpoints[i]))
  );
}

function samePort(a: SlicePortObject, b: SlicePortObject | undefined): boolean {
  return a.name === b?.name && a.port === b?.port && a.protocol === b?.protocol;
}

function sameEndpointObject(a: EndpointObject, b: EndpointObject | undefined): boolean {
  return (
    a.address === b?.address &&
    a.ready === b?.ready &&
    a.serving === b?.serving &&
    a.terminating === b?.terminating &&
    a.nodeName === b?.nodeName &&
    sameStrings(a.zoneHints, b?.zoneHints) &&
    sameStrings(a.nodeHints, b?.nodeHints)
  );
}
