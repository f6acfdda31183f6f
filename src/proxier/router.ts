import type { Family } from '../model/ip.ts';
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
import type { SetAside } from './set-aside.ts';

/** Takes the objects of one family. */
export interface FamilySink {
  readonly family: Family;
  updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): void;
  updateSlice(object: EndpointSliceObject, removed: boolean): void;
  setServiceCIDRs(cidrs: readonly string[]): void;
  /** All objects of the first list of that resource have been delivered. */
  synced(resource: ResourceName): void;
}

/** Passes each object to the families it concerns: Services to all, slices by their address type. */
export class Router implements ObjectHandler {
  readonly #families: readonly FamilySink[];
  readonly #logger: Logger;
  readonly #setAside: SetAside;
  readonly #serviceCIDRs: ServiceCIDRs;

  constructor(families: readonly FamilySink[], setAside: SetAside, logger: Logger) {
    this.#families = families;
    this.#setAside = setAside;
    this.#serviceCIDRs = new ServiceCIDRs((problem) => {
      for (const { family } of families) setAside.report(family, problem);
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
    for (const family of this.#families) family.synced(resource);
  }

  #updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): void {
    const update = () => {
      for (const family of this.#families) family.updateService(previous, object);
    };
    this.#read('Service', previous, object, update);
  }

  #updateSlice(
    slice: EndpointSliceObject,
    previous: EndpointSliceObject | undefined,
    removed: boolean,
  ): void {
    const { addressType } = slice;
    const isOfNewType = previous?.addressType !== addressType;
    // Happens when a slice is deleted and created again while no watch runs, or when a manifest is edited.
    if (previous && isOfNewType) this.#updateFamily(previous, true);
    if (addressType !== 'IPv4' && addressType !== 'IPv6') {
      if (isOfNewType) this.#logIgnored(slice);
      return;
    }
    this.#read('EndpointSlice', previous, removed ? undefined : slice, () =>
      this.#updateFamily(slice, removed),
    );
  }

  #logIgnored({ addressType, namespace, name }: EndpointSliceObject): void {
    const error = new Error(`addressType ${JSON.stringify(addressType)} is neither IPv4 nor IPv6`);
    this.#logger.error(error, 'EndpointSlice ignored', { endpointSlice: `${namespace}/${name}` });
  }

  #updateFamily(slice: EndpointSliceObject, removed: boolean): void {
    for (const family of this.#families) {
      if (family.family === slice.addressType) family.updateSlice(slice, removed);
    }
  }

  #updateServiceCIDR(previous: ServiceCIDRObject | undefined, object: ServiceCIDRObject | undefined): void {
    this.#read('ServiceCIDR', previous, object, () => this.#serviceCIDRs.update(previous, object));
    for (const family of this.#families) family.setServiceCIDRs(this.#serviceCIDRs.of(family.family));
  }

  /** Runs `update`; the problems that it reports replace the known ones of the object. A resync keeps them. */
  #read<T extends { readonly name: string }>(
    kind: 'Service' | 'EndpointSlice' | 'ServiceCIDR',
    previous: T | undefined,
    object: T | undefined,
    update: () => void,
  ): void {
    const subject = object ?? previous;
    if (!subject || previous === object) {
      update();
      return;
    }
    const namespace = 'namespace' in subject ? String(subject.namespace) : '';
    this.#setAside.reading({ kind, namespace, name: subject.name }, update);
  }
}
