/** Why a connection may end otherwise than the objects in the API server promise. */
export interface Tolerance {
  readonly from: string;
  readonly until: string;
  /** Modes to which it applies; all when absent. */
  readonly modes?: readonly string[];
  readonly reason: string;
}

/**
 * All tolerances of the oracle. None is a length of time: each ends with an event that the run waits for. A run in which
 * the event does not come fails.
 */
export const tolerances = {
  change: {
    from: 'the moment before an object is put',
    until: 'a Service that was put later is served',
    reason:
      'The program learns of a change over a watch and then writes it. Objects arrive one by one, so that any mixture of ' +
      'old and new objects may be in effect; what the client sees must be the promise of one of these mixtures.',
  },
  tables: {
    from: 'the moment before endpoints change between none and some',
    until: 'as for `change`',
    modes: ['iptables', 'ipvs'],
    reason:
      'iptables-restore commits the tables filter and nat one after the other. Between the two, packets to a service ' +
      'that had no endpoints are neither rejected nor forwarded.',
  },
  flush: {
    from: 'the moment before another program removes rules',
    until: 'the kernel holds what the program wants (kube-proxyctl diff finds nothing)',
    reason: 'Without rules no service is served. Only the repair by the program ends that.',
  },
  away: {
    from: 'the moment before the program is killed, told to end or halted',
    until: 'a Service that was put after the new start, or after it goes on, is served',
    modes: ['userspace'],
    reason: 'In userspace mode the program itself relays connections: while it does not run there are none.',
  },
} as const satisfies Readonly<Record<string, Tolerance>>;

export type Cause = keyof typeof tolerances;

/** Longest waits. They only decide when a run gives up, and are multiplied by KPT_PACE. */
export const patience = {
  /** For events that end a tolerance: the program asks a failing API server again after up to 30 s. */
  eventMs: 90_000,
  /** For the outcome of a connection. An answer takes milliseconds; the rest is for a busy machine. */
  answerMs: 10_000,
  /** For a packet that will be dropped. It ends the wait for an answer that must not come. */
  silenceMs: 300,
} as const;

/** How much of the machine a program may have taken at the end, more than one that has just started. */
export const growth = {
  /** Garbage of the heap that the collector has not returned, and pages of libraries that a start does not touch. */
  memoryMB: 48,
  /** Memory is compared after this many operations: in a shorter run the collector has not settled. */
  operations: 100,
  /** Connections of HTTP clients that are kept open for a while. */
  descriptors: 4,
} as const;
