import type { EndpointSliceObject } from './objects.ts';

/** Where an endpoint runs, as far as its slice says it. */
export interface Placement {
  /** `namespace/name`. */
  readonly pod?: string;
  readonly node?: string;
  readonly zone?: string;
}

/** Where the endpoints of one service port run. */
export interface Placements {
  /** By `ip:port` of the endpoint. */
  readonly byEndpoint: ReadonlyMap<string, Placement>;
  /** The versions of the slices that this was read from. */
  readonly slices: readonly EndpointSliceObject[];
}
