import type { Clock, Timer } from '../../lib/clock.ts';
import { asError } from '../../lib/thrown.ts';
import type { Watch } from '../../native/libc.ts';
import { isSystemError } from '../../native/system-error.ts';
import { forEachMessage, type NetlinkMessage } from './reader.ts';
import type { NetlinkTransport } from './transport.ts';

/** Receives the notifications of multicast groups. */
export interface NotificationHandler {
  /** The message refers to a buffer that is reused. */
  message(message: NetlinkMessage): void;
  /** The kernel dropped notifications because the receive buffer was full. */
  overrun(): void;
  /** The socket failed or a datagram was malformed. The subscription is closed. */
  failed(error: Error): void;
}

export interface NetlinkSubscription {
  /** Leaves the groups until `resume`, so that the kernel does not build notifications for us. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** A subscription that tells when it has caught up. */
export interface DrainableSubscription extends NetlinkSubscription {
  /** Resolves when no notification is queued: every one from before this call is then delivered. */
  drained(): Promise<void>;
}

/** For a flood of notifications that may come late: they are then received together, which costs less. */
export interface Rest {
  /** Time between two times of receiving. */
  readonly ms: number;
  readonly clock: Clock;
}

/**
 * Datagrams received before other work of the event loop runs; with rests, as many as fit into this time. A change of the
 * rules takes several turns of the event loop, and each of them may wait for one of these.
 */
const datagramsPerTurn = 64;
const turnAfterRestMs = 1;
const datagramsPerCheck = 16;

/**
 * Joins multicast groups on a transport, which it closes with the subscription, and delivers their notifications. Every
 * notification after this function returns is delivered or reported as an overrun.
 */
export function subscribe(
  transport: NetlinkTransport,
  groups: readonly number[],
  handler: NotificationHandler,
  rest?: Rest,
): DrainableSubscription {
  let open = true;
  let waiting: (() => void)[] = [];
  const settle = () => {
    const settled = waiting;
    waiting = [];
    for (const resolve of settled) resolve();
  };
  const join = () => {
    for (const group of groups) transport.join(group);
  };
  const close = () => {
    if (!open) return;
    open = false;
    watch?.close();
    resting?.cancel();
    transport.close();
    settle();
  };
  try {
    join();
  } catch (error) {
    transport.close();
    throw error;
  }
  let watch: Watch | undefined;
  let resting: Timer | undefined;
  const turn = () => {
    const isOver = turnLimit(rest);
    let isEmpty = false;
    try {
      for (let i = 0; open && !isEmpty && !isOver(i); i++) isEmpty = !receiveOne(transport, handler);
    } catch (error) {
      close();
      handler.failed(asError(error));
    }
    if (isEmpty) settle();
    if (open && rest) takeRest(rest, isEmpty);
    // Without a further datagram, nobody would find out that none is left.
    else if (open && waiting.length > 0) setImmediate(turn);
  };
  const takeRest = ({ clock, ms }: Rest, isEmpty: boolean) => {
    watch?.close();
    watch = undefined;
    resting?.cancel();
    const arm = () => {
      watch = transport.watch(turn);
    };
    resting = isEmpty ? clock.setTimeout(arm, ms) : inNextTurn(turn);
  };
  watch = transport.watch(turn);
  return {
    pause: () => {
      if (open) for (const group of groups) transport.leave(group);
    },
    resume: () => {
      if (open) join();
    },
    drained: () =>
      new Promise((resolve) => {
        if (!open) return resolve();
        waiting.push(resolve);
        turn();
      }),
    close,
  };
}

/** Runs a function after the other work that the event loop has now. A timer would add a millisecond. */
function inNextTurn(run: () => void): Timer {
  const immediate = setImmediate(run);
  return { cancel: () => clearImmediate(immediate) };
}

/** Tells after how many datagrams a turn is over. */
function turnLimit(rest: Rest | undefined): (received: number) => boolean {
  if (!rest) return (received) => received >= datagramsPerTurn;
  const end = rest.clock.monotonic() + turnAfterRestMs;
  return (received) => received > 0 && received % datagramsPerCheck === 0 && rest.clock.monotonic() >= end;
}

/** Delivers one datagram; returns false when none is queued. */
function receiveOne(transport: NetlinkTransport, handler: NotificationHandler): boolean {
  try {
    const datagram = transport.receive();
    if (!datagram) return false;
    if (datagram.sender === 0) forEachMessage(datagram.bytes, (message) => handler.message(message));
  } catch (error) {
    if (!isSystemError(error, 'ENOBUFS')) throw error;
    handler.overrun();
  }
  return true;
}
