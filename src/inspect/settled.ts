import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import type { FamilyView } from './family-view.ts';

export interface Settled<T> {
  readonly result: T;
  /** False when a sync disturbed every attempt. */
  readonly settled: boolean;
}

const attempts = 4;
const waitMs = 100;
const waits = 50;

/** Compares the plans with the kernel. Repeats that when they differ and a sync ran meanwhile. */
export async function compareSettled<T>(
  view: FamilyView,
  clock: Clock,
  compare: () => Promise<T>,
  differs: (result: T) => boolean,
): Promise<Settled<T>> {
  for (let attempt = 1; ; attempt++) {
    const isStill = await standsStill(view, clock);
    const before = syncsOf(view);
    const result = await compare();
    const settled = isStill && !view.activity.isSyncing && syncsOf(view) === before;
    if (settled || !differs(result)) return { result, settled: true };
    if (attempt === attempts) return { result, settled: false };
  }
}

/** Waits some seconds for a running sync to end; returns whether none runs. */
async function standsStill({ activity }: FamilyView, clock: Clock): Promise<boolean> {
  for (let i = 0; i < waits && activity.isSyncing; i++) {
    await sleep(clock, waitMs);
  }
  return !activity.isSyncing;
}

function syncsOf({ activity }: FamilyView): number {
  return activity.syncs + activity.failures;
}
