import type {
  EndpointSliceObject,
  ResourceName,
  Resources,
  ServiceCIDRObject,
  ServiceObject,
} from '../model/objects.ts';
import type { Logger } from '../obs/log.ts';
import type { ObjectHandler } from '../sources/source.ts';
import { ServiceCIDRs } from '../state/service-cidrs.ts';
import type { FamilyProxier } from './family-proxier.ts';
import type { SetAside } from './set-aside.ts';

/** Hands each object to the families it concerns: Services to all, slices by their address type. */
export class Router implements ObjectHandler {
  readonly #proxiers: readonly FamilyProxier[];
  readonly #logger: Logger;
  readonly #setAside: SetAside;
  readonly #serviceCIDRs: ServiceCIDRs;

  constructor(proxiers: readonly FamilyProxier[], setAside: SetAside, logger: Logger) {
    this.#proxiers = proxiers;
    this.#setAside = setAside;
    this.#serviceCIDRs = new ServiceCIDRs((problem) => {
      for (const { family } of proxiers) setAside.report(family, problem);
    });
    this.#logger = logger;
  }

  upsert<R extends ResourceName>(
    resource: R,
    object: Resources[R],
    previous: Resources[R] | undefined,
  ): void {
    if (resource === 'services') {
      this.#updateService(previous as ServiceObject | undefined, object as ServiceObject);
    } else if (resource === 'endpointSlices') {
      this.#updateSlice(object as EndpointSliceObject, previous as EndpointSliceObject | undefined, false);
    } else if (resource === 'serviceCIDRs') {
      this.#updateServiceCIDR(previous as ServiceCIDRObject | undefined, object as ServiceCIDRObject);
    }
  }

  remove<R extends ResourceName>(resource: R, object: Resources[R]): void {
    if (resource === 'services') this.#updateService(object as ServiceObject, undefined);
    else if (resource === 'endpointSlices') {
      this.#updateSlice(object as EndpointSliceObject, object as EndpointSliceObject, true);
    } else if (resource === 'serviceCIDRs') this.#updateServiceCIDR(object as ServiceCIDRObject, undefined);
  }

  synced(resource: ResourceName): void {
    if (resource !== 'services' && resource !== 'endpointSlices') return;
    for (const proxier of this.#proxiers) proxier.synced(resource);
  }

  #updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): void {
    const update = () => {
      for (const proxier of this.#proxiers) proxier.updateService(previous, object);
    };
    this.#read('Service', previous, object, update);
  }

  #updateSlice(
    slice: EndpointSliceObject,
    previous: EndpointSliceObject | undefined,
    removed: boolean,
  ): void {
    const { addressType, namespace, name } = slice;
    if (addressType !== 'IPv4' && addressType !== 'IPv6') {
      const error = new Error(`addressType ${JSON.stringify(addressType)} is neither IPv4 nor IPv6`);
      this.#logger.error(error, 'EndpointSlice ignored', { endpointSlice: `${namespace}/${name}` });
      return;
    }
    this.#read('EndpointSlice', previous, removed ? undefined : slice, () => {
      for (const proxier of this.#proxiers) {
        if (proxier.family === addressType) proxier.updateSlice(slice, removed);
      }
    });
  }

  #updateServiceCIDR(previous: ServiceCIDRObject | undefined, object: ServiceCIDRObject | undefined): void {
    this.#read('ServiceCIDR', previous, object, () => this.#serviceCIDRs.update(previous, object));
    for (const proxier of this.#proxiers) proxier.setServiceCIDRs(this.#serviceCIDRs.of(proxier.family));
  }

  /** Reading an object says anew what is wrong with it, except on a resync, which repeats it unread. */
  #read<T extends { readonly name: string }>(
    kind: 'Service' | 'EndpointSlice' | 'ServiceCIDR',
    previous: T | undefined,
    object: T | undefined,
    read: () => void,
  ): void {
    const subject = object ?? previous;
    if (!subject || previous === object) {
      read();
      return;
    }
    const namespace = 'namespace' in subject ? String(subject.namespace) : '';
    this.#setAside.reading({ kind, namespace, name: subject.name }, read);
  }
}
