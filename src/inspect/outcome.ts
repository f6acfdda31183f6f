import type { Endpoint } from '../model/endpoint.ts';

/** The packet goes no further as a packet to a service, and why. */
export interface Outcome {
  readonly action: 'drop' | 'reject' | 'pass';
  readonly reasons: readonly string[];
}

/** It goes to one of these, each as likely as any other; never empty. */
export interface Choice {
  readonly action: 'forward';
  readonly endpoints: readonly Endpoint[];
  readonly reasons: readonly string[];
}

/** Whether endpoints see an address of the node instead of the client's, and why. */
export interface Masquerade {
  readonly masquerade: boolean;
  readonly reason: string;
}
