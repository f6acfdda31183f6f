import { availableParallelism } from 'node:os';
import type { Clock } from '../lib/clock.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { Admission, sharedOccupancy } from './admission.ts';
import type { Forwarder, ForwarderOptions } from './forwarder.ts';
import { ForwarderPool } from './forwarder-pool.ts';
import { LocalForwarder } from './local-forwarder.ts';
import { connectionsIn, limitsFor, raiseOpenFileLimit } from './open-files.ts';
import { claimPort, type PortClaim } from './port-claim.ts';
import type { Report } from './reports.ts';
import type { SocketAddress } from './socket-address.ts';
import { ForwarderThread } from './thread.ts';

export interface OpenOptions extends ForwarderOptions {
  readonly clock: Clock;
  readonly report: (report: Report) => void;
}

/** A forwarder for all traffic of a node, and claims on its ports. */
export interface NodeForwarder {
  readonly forwarder: Forwarder;
  claim(protocol: 'TCP' | 'UDP', at: SocketAddress): PortClaim;
  /** How many files and connections can be open, where no socket listens yet. */
  readonly room: { readonly openFiles: number; readonly connections: number; readonly perService: number };
  /** Why there can be fewer than wanted; undefined when there is nothing to say. */
  readonly problem: string | undefined;
}

/** More threads than this only help when all of them are busy with different services. */
const maxThreads = 4;

/** Raises the limit of open files and starts forwarding threads. */
export async function openNodeForwarder(options: OpenOptions): Promise<NodeForwarder> {
  const { dialTimeouts, udpIdleMs, clock, report } = options;
  const sockets = await loadSockets();
  const { limit, problem } = raiseOpenFileLimit(sockets);
  const count = Math.min(maxThreads, availableParallelism());
  const limits = limitsFor(limit);
  const [own, ...places] = sharedOccupancy(1 + count);
  const claims = new Admission(limits, own);
  const threads = places.map((occupancy) => {
    const settings = { dialTimeouts, udpIdleMs, limits, occupancy };
    return new ForwarderThread({ settings, sockets, clock, report });
  });
  return {
    forwarder: new ForwarderPool(threads),
    claim: (protocol, at) => claimPort(sockets, claims, protocol, at),
    room: { openFiles: limit, connections: connectionsIn(limits.files), perService: limits.perService },
    problem,
  };
}

/** A forwarder without a thread of its own, for what little traffic there is on loopback. */
export async function openLocalForwarder(
  options: OpenOptions & { random: () => number },
): Promise<Forwarder> {
  const sockets = await loadSockets();
  return new LocalForwarder({ ...options, sockets, limits: limitsFor(sockets.openFileLimit()[0]) });
}
