import type { Clock } from '../lib/clock.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import type { EndpointSliceObject, ServiceObject } from '../model/objects.ts';
import type { Placements } from '../model/placement.ts';
import type { ServicePort } from '../model/service-port.ts';
import type { ServiceDefaults } from '../model/service-ports.ts';
import type { PlanContext, PlannedPort } from '../plan/plan.ts';
import { Planner } from '../plan/planner.ts';
import { FamilyState } from '../state/family-state.ts';
import type { FamilySink } from './router.ts';

export interface PlannedFamilyOptions {
  readonly family: Family;
  readonly nodeName: string;
  readonly onProblem: (problem: ObjectProblem) => void;
  readonly clock: Clock;
  readonly defaults?: ServiceDefaults;
}

/** The plans of one family without a proxy: takes objects, and plans them when `plan` is called. */
export class PlannedFamily implements FamilySink {
  readonly family: Family;
  readonly #clock: Clock;
  readonly #state: FamilyState;
  readonly #planner = new Planner();
  #serviceCIDRs: readonly string[] = [];

  constructor(options: PlannedFamilyOptions) {
    this.family = options.family;
    this.#clock = options.clock;
    this.#state = new FamilyState({ ...options, startTime: 0 });
  }

  get plans(): ReadonlyMap<string, PlannedPort> {
    return this.#planner.plans;
  }

  placements(port: ServicePort, known?: Placements): Placements {
    return this.#state.placements(port, known);
  }

  get serviceCIDRs(): readonly string[] {
    return this.#serviceCIDRs;
  }

  get totalEndpoints(): number {
    return this.#state.totalEndpoints;
  }

  updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): void {
    this.#state.updateService(previous, object);
  }

  updateSlice(object: EndpointSliceObject, removed: boolean): void {
    this.#state.updateSlice(object, removed);
  }

  setServiceCIDRs(cidrs: readonly string[]): void {
    this.#serviceCIDRs = cidrs;
  }

  synced(): void {}

  /** Service ports that do not get all that they ask for, with the reason. */
  shortfalls(): ReturnType<Planner['shortfalls']> {
    return this.#planner.shortfalls();
  }

  /** Plans all changes since the last call. */
  async plan(context: PlanContext): Promise<void> {
    const { changed } = this.#state.takeDelta();
    await this.#planner.apply(changed, this.#state, context, new TimeSlice(this.#clock));
  }
}
