import type {
  FlowFilter,
  MeteredKind,
  MeteredPort,
  TrafficAnswer,
  TrafficMeter,
  TrafficSource,
  TrafficWish,
} from '../inspect/traffic.ts';
import type { FlowEvent, FlowItem } from '../inspect/traffic-api.ts';
import type { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { reportSliceMs, TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { flowItem } from './flow-item.ts';
import { Observation, type ObservedKernel } from './observation.ts';
import type { PlanFeed } from './plan-feed.ts';
import type { Decider } from './refusals.ts';
import { trafficItems } from './report.ts';
import type { ObservedService } from './service-index.ts';

export interface TrafficObserverOptions {
  readonly feeds: readonly PlanFeed[];
  /** Opens sockets to the kernel. Rejects when the kernel does not let us. */
  readonly open: () => Promise<ObservedKernel>;
  /** Opens a meter that needs no events. Rejects when the kernel or the mode has none. */
  readonly openMeter: (kinds: ReadonlySet<MeteredKind>) => Promise<TrafficMeter>;
  /** Called with the reason when events are counted instead. */
  readonly onEventMeter: (error: unknown) => void;
  /** What decides about packets of a family now. */
  readonly decider: (family: Family) => Decider;
  readonly clock: Clock;
}

/** How long an observation goes on after the last question. */
const leaseMs = 30_000;
/** Age of open connections in metrics that come from events: reading the table would cost more than the events. */
const meterAgeMs = 60_000;

type Event = Omit<FlowEvent, 'apiVersion' | 'kind'>;

/**
 * Observes the traffic of service ports while somebody asks. The first question opens sockets, makes the kernel count,
 * and reads the plans; half a minute after the last one, everything is given back.
 */
export class TrafficObserver implements TrafficSource {
  readonly #options: TrafficObserverOptions;
  #running: Promise<Observation> | undefined;
  #users = 0;
  #lease: Timer | undefined;
  /** Only one report at a time looks at the table. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: TrafficObserverOptions) {
    this.#options = options;
  }

  async figures(wish: TrafficWish): Promise<TrafficAnswer> {
    const end = this.#begin();
    try {
      const observation = await this.#observation();
      return await this.#exclusively(async () => {
        await observation.refresh(wish.maxAgeMs);
        const { since, lostEvents } = observation;
        const found = await trafficItems(
          observation,
          wish,
          (family) => this.#options.decider(family).rules,
          new TimeSlice(this.#options.clock, reportSliceMs),
        );
        return { ...found, since, lostEvents, warning: observation.warning };
      });
    } finally {
      end();
    }
  }

  async flows(isWanted: FlowFilter, write: (flows: readonly FlowItem[]) => Promise<void>): Promise<void> {
    const end = this.#begin();
    try {
      const observation = await this.#observation();
      let found: FlowItem[] = [];
      const flush = () => {
        const some = found;
        found = [];
        return some.length > 0 ? write(some) : undefined;
      };
      const { clock } = this.#options;
      await observation.forEachFlow({
        flow: (flow, service) => {
          const item = flowItem(flow, service, clock.now());
          if (isWanted(item, service.plan)) found.push(item);
        },
        pause: flush,
      });
      await flush();
    } finally {
      end();
    }
  }

  async watch(isWanted: FlowFilter, onEvent: (event: Event) => void, onEnd: () => void): Promise<() => void> {
    const end = this.#begin();
    try {
      const observation = await this.#observation();
      const { clock } = this.#options;
      const timeOf = timeTexts();
      const tell = (event: Event['event'], flow: FlowItem | null, reason: string | null, count = 1) =>
        onEvent({ time: timeOf(clock.now()), event, flow, reason, count });
      const pass = (event: 'Opened' | 'Ended') => (flow: TrackedFlow, service: ObservedService) => {
        const item = flowItem(flow, service, clock.now());
        if (isWanted(item, service.plan)) tell(event, item, null);
      };
      const watcher = {
        opened: pass('Opened'),
        ended: pass('Ended'),
        refused: (
          event: 'Rejected' | 'Dropped' | 'Filtered',
          item: FlowItem,
          service: ObservedService,
          reason: string,
        ) => {
          if (isWanted(item, service.plan)) tell(event, item, reason);
        },
        lost: (count: number) => tell('Lost', null, null, count),
        closed: onEnd,
      };
      observation.watch(watcher);
      return () => {
        if (observation.unwatch(watcher)) end();
      };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Where rules cannot count, events do, at a higher price. When these fail, the next reading tries again. */
  async openMeter(kinds: ReadonlySet<MeteredKind>): Promise<TrafficMeter> {
    try {
      return await this.#options.openMeter(kinds);
    } catch (error) {
      this.#options.onEventMeter(error);
    }
    this.#begin();
    this.#observation().catch(() => {});
    return { read: () => this.#meteredPorts() };
  }

  /** Gives back everything at once. */
  async close(): Promise<void> {
    this.#lease?.cancel();
    const running = this.#running;
    this.#running = undefined;
    const observation = await running?.catch(() => undefined);
    observation?.close();
  }

  async #meteredPorts(): Promise<readonly MeteredPort[]> {
    const plans = new Map<string, PlannedPort>();
    const isWanted = (plan: PlannedPort) => {
      plans.set(`${plan.port.family} ${plan.port.key}`, plan);
      return true;
    };
    const { items } = await this.figures({ by: 'service', isWanted, withIdle: false, maxAgeMs: meterAgeMs });
    return items.flatMap((figures) => {
      const plan = plans.get(`${figures.family} ${figures.service}`);
      return plan ? [{ port: plan.port, figures }] : [];
    });
  }

  #begin(): () => void {
    this.#lease?.cancel();
    this.#users++;
    return () => {
      this.#users--;
      this.#lease?.cancel();
      if (this.#users === 0) this.#lease = this.#options.clock.setTimeout(() => void this.close(), leaseMs);
    };
  }

  #observation(): Promise<Observation> {
    const start = async () => {
      const { feeds, decider, clock, open } = this.#options;
      const onFailure = () => void this.close();
      const observation = new Observation({ feeds, kernel: await open(), decider, clock, onFailure });
      try {
        await observation.start();
        return observation;
      } catch (error) {
        observation.close();
        throw error;
      }
    };
    const running = this.#running ?? start();
    if (!this.#running) {
      this.#running = running;
      running.catch(() => {
        if (this.#running === running) this.#running = undefined;
      });
    }
    return running;
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Many events come in the same millisecond. */
function timeTexts(): (now: number) => string {
  let last = { now: 0, text: '' };
  return (now) => {
    if (now !== last.now) last = { now, text: new Date(now).toISOString() };
    return last.text;
  };
}
