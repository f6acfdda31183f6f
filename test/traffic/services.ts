import type { ServiceSpec } from '../contract/story.ts';

/** What differs between modes. */
export interface TrafficOptions {
  /** `--proxy-mode`. */
  readonly mode: string;
  /** The calling module, which is started again in a new network namespace. */
  readonly module: string;
  /** The process forwards connections itself: the kernel counts other bytes, and sees no failure to reach an endpoint. */
  readonly forwardsItself?: boolean;
  /** Under policy Local, endpoints elsewhere are used when there are none here. */
  readonly bendsPolicyLocal?: boolean;
  /** A client stays bound while the kernel remembers one of its connections. */
  readonly bindingsOutlastTheirTime?: boolean;
}

/** The Services of the story, by name. */
export const services: Readonly<Record<string, ServiceSpec>> = {
  web: { protocols: ['TCP', 'UDP'], nodePort: true, external: true, endpoints: ['A', 'B'] },
  sticky: { protocols: ['TCP', 'UDP'], nodePort: true, affinitySeconds: 600, endpoints: ['A', 'B', 'C'] },
  near: { nodePort: true, externalPolicy: 'Local', endpoints: ['A', 'B'] },
  talk: { nodePort: true, endpoints: ['A', 'B'] },
  lonely: { protocols: ['TCP', 'UDP'], nodePort: true, endpoints: [] },
  local: { protocols: ['TCP', 'UDP'], nodePort: true, externalPolicy: 'Local', endpoints: ['B'] },
  ranged: { protocols: ['TCP', 'UDP'], loadBalancer: true, ranges: ['clients'], endpoints: ['A'] },
  closed: { endpoints: ['C'] },
  silent: { endpoints: ['nobody'] },
};
