import type { TrafficFigures } from '../inspect/traffic-api.ts';
import type { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import { isOpen, isReset, isUnanswered } from './flow-state.ts';

/** Connections that the proxy did not let through. */
export type Refusal = 'rejected' | 'dropped' | 'filtered';

interface Amounts {
  readonly packetsOut: number;
  readonly bytesOut: number;
  readonly packetsBack: number;
  readonly bytesBack: number;
}

/** Packets and bytes of flows. */
class Volume implements Amounts {
  packetsOut = 0;
  bytesOut = 0;
  packetsBack = 0;
  bytesBack = 0;

  add({ packetsOut, bytesOut, packetsBack, bytesBack }: Amounts, sign: 1 | -1): void {
    this.packetsOut += sign * packetsOut;
    this.bytesOut += sign * bytesOut;
    this.packetsBack += sign * packetsBack;
    this.bytesBack += sign * bytesBack;
  }
}

/** What events told so far. Volume and resets from before the beginning are subtracted, so they may be negative. */
class Counted extends Volume {
  opened = 0;
  openBefore = 0;
  rejected = 0;
  dropped = 0;
  filtered = 0;
  reset = 0;
  unanswered = 0;
}

/** What a look at the table of connections found. */
class Looked extends Volume {
  open = 0;
  reset = 0;
}

const nothing = new Looked();

/**
 * The figures of one service port, endpoint or client. Between two looks at the table, what events tell is collected for
 * the next report, while the last one can still be read: a flow counts either as ended or as found by the look.
 */
export class Figures {
  #current = new Counted();
  #reported = new Counted();
  #changedIn = -1;
  #looked: Looked | undefined;
  #lookedIn = -1;

  /** `period` is the number of the last look. */
  opened(period: number): void {
    this.#change(period).opened++;
  }

  ended(flow: FlowSums, period: number): void {
    const counted = this.#change(period);
    counted.add(flow, 1);
    if (flow.isReset) counted.reset++;
    if (flow.isUnanswered) counted.unanswered++;
  }

  refused(how: Refusal, period: number): void {
    this.#change(period)[how]++;
  }

  /** A flow that was there at the beginning. */
  wasThere(flow: FlowSums): void {
    const counted = this.#current;
    counted.add(flow, -1);
    if (flow.isOpen) counted.openBefore++;
    if (flow.isReset) counted.reset--;
  }

  /** A flow that the look with this number found. */
  found(flow: FlowSums, look: number): void {
    const looked = this.#lookedIn === look && this.#looked ? this.#looked : new Looked();
    this.#looked = looked;
    this.#lookedIn = look;
    looked.add(flow, 1);
    if (flow.isOpen) looked.open++;
    if (flow.isReset) looked.reset++;
  }

  /** The figures as of the look with this number, the last one; at will with the openings and refusals of now. */
  at(look: number, isCounted: boolean, isLive = false): TrafficFigures {
    const counted = this.#changedIn === look ? this.#reported : this.#current;
    const looked = this.#lookedIn === look && this.#looked ? this.#looked : nothing;
    const volume = (name: keyof Amounts) => (isCounted ? Math.max(0, counted[name] + looked[name]) : null);
    const { openBefore } = counted;
    const { opened, rejected, dropped, filtered, unanswered } = isLive ? this.#current : counted;
    return {
      opened,
      ended: Math.max(0, openBefore + counted.opened - looked.open),
      open: looked.open,
      packetsToEndpoint: volume('packetsOut'),
      packetsToClient: volume('packetsBack'),
      bytesToEndpoint: volume('bytesOut'),
      bytesToClient: volume('bytesBack'),
      failed: {
        rejected,
        dropped,
        filtered,
        reset: Math.max(0, counted.reset + looked.reset),
        unanswered,
      },
    };
  }

  /** How busy it is; to find those that can be forgotten. */
  get weight(): number {
    return this.#current.opened + this.#current.openBefore;
  }

  /** What is counted from now on belongs to the next report. */
  #change(period: number): Counted {
    if (this.#changedIn !== period) {
      this.#changedIn = period;
      Object.assign(this.#reported, this.#current);
    }
    return this.#current;
  }
}

/** What counts of one flow, without its addresses. */
export class FlowSums extends Volume {
  isOpen = false;
  isReset = false;
  isUnanswered = false;

  static of(flow: TrackedFlow): FlowSums {
    const sums = new FlowSums();
    sums.add(flow, 1);
    sums.isOpen = isOpen(flow);
    sums.isReset = isReset(flow);
    sums.isUnanswered = isUnanswered(flow);
    return sums;
  }
}
