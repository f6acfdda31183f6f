import { availableParallelism } from 'node:os';
import type { Clock } from '../lib/clock.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { SOCK_DGRAM, SOCK_STREAM, type Sockets } from '../native/sockets.ts';
import { Admission, sharedOccupancy } from './admission.ts';
import type { Forwarder, ForwarderOptions } from './forwarder.ts';
import { ForwarderPool } from './forwarder-pool.ts';
import { localForwarder } from './local-forwarder.ts';
import { connectionsIn, limitsFor, raiseOpenFileLimit } from './open-files.ts';
import { boundPort, openSocket } from './open-socket.ts';
import type { Report } from './reports.ts';
import type { SocketAddress } from './socket-address.ts';
import { ForwarderThread } from './thread.ts';

interface OpenOptions extends ForwarderOptions {
  readonly clock: Clock;
  readonly report: (report: Report) => void;
}

/** A port that no other program can bind until it is released. */
export interface PortClaim {
  readonly port: number;
  release(): void;
}

/** A forwarder for all traffic of a node, and claims on the node's ports. */
export interface NodeForwarder {
  readonly forwarder: Forwarder;
  /** With port 0 the system chooses. Throws SystemError when the port is in use or too many are held. */
  claim(protocol: 'TCP' | 'UDP', at: SocketAddress): PortClaim;
  /** How many files and connections can be open while nothing listens yet. */
  readonly room: { readonly openFiles: number; readonly connections: number; readonly perService: number };
  /** Why there can be fewer than wanted, if so. */
  readonly problem: string | undefined;
}

/** More threads only help when more than four services are busy at once. */
const maxThreads = 4;

/** Raises the limit on open files and starts the forwarding threads. */
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
  const forwarder = new ForwarderPool(threads);
  // Node aborts when the program ends while a thread still loads a native library: wait until all have.
  await forwarder.traffic();
  return {
    forwarder,
    claim: (protocol, at) => claimPort(sockets, claims, protocol, at),
    room: { openFiles: limit, connections: connectionsIn(limits.files), perService: limits.perService },
    problem,
  };
}

/** Opens a forwarder without threads, for the little traffic on loopback. */
export async function openLocalForwarder(
  options: OpenOptions & { random: () => number },
): Promise<Forwarder> {
  const sockets = await loadSockets();
  return localForwarder({ ...options, sockets, limits: limitsFor(sockets.openFileLimit()[0]) });
}

/** Binds the port but does not listen: the kernel then refuses stray connections instead of queueing them. */
function claimPort(
  sockets: Sockets,
  admission: Admission,
  protocol: 'TCP' | 'UDP',
  at: SocketAddress,
): PortClaim {
  const type = protocol === 'TCP' ? SOCK_STREAM : SOCK_DGRAM;
  const fd = admission.listen(() => openSocket(sockets, type, at));
  return {
    port: boundPort(sockets, fd),
    release: () => {
      sockets.close(fd);
      admission.unlisten();
    },
  };
}
