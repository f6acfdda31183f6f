import type { ServicePort } from '../model/service-port.ts';
import type { SliceChange } from './service-record.ts';
import { isSamePort, type SliceEntry } from './slice-entry.ts';

/** What is not applied of one Service. */
export interface ServiceChange {
  /** Undefined when they stay as they are. */
  readonly ports?: readonly ServicePort[] | undefined;
  readonly slices?: SliceChange | undefined;
}

interface Held extends ServiceChange {
  /** By the monotonic clock; undefined until the first `overdue`. */
  readonly since: number | undefined;
}

/** A Service and its slices change together, but their events come one by one. The others are late by this at most. */
const lateMs = 1_000;

/** Changes of Services that are renaming a port: they wait until the Service and all of its slices use the new name. */
export class Renames {
  readonly #held = new Map<string, Held>();

  /** Returns a change of a Service, with what is held of it. */
  joined(name: string, change: ServiceChange): ServiceChange {
    const held = this.#held.get(name);
    if (!held) return change;
    const slices = joinSlices(held.slices, change.slices);
    return { ports: change.ports ?? held.ports, slices };
  }

  hold(name: string, change: ServiceChange): void {
    this.#held.set(name, { ...change, since: this.#held.get(name)?.since });
  }

  release(name: string): void {
    this.#held.delete(name);
  }

  /** Forgets ports that are out of date. */
  dropPorts(name: string): void {
    const held = this.#held.get(name);
    if (!held) return;
    if (held.slices) this.#held.set(name, { ...held, ports: undefined });
    else this.#held.delete(name);
  }

  /** Removes and returns what has waited for too long at this monotonic time; everything without a time. */
  takeOverdue(now: number | undefined): [name: string, change: ServiceChange][] {
    const overdue: [string, ServiceChange][] = [];
    for (const [name, held] of this.#held) {
      if (now === undefined || (held.since ?? now) + lateMs <= now) {
        this.#held.delete(name);
        overdue.push([name, held]);
      } else if (held.since === undefined) this.#held.set(name, { ...held, since: now });
    }
    return overdue;
  }

  /** When something will have waited for too long; undefined when nothing waits. Call it after `takeOverdue`. */
  get dueAt(): number | undefined {
    const [first] = this.#held.values();
    return first && (first.since ?? 0) + lateMs;
  }

  /** Number of Services whose ports wait. */
  get services(): number {
    return [...this.#held.values()].filter(({ ports }) => ports).length;
  }

  /** Number of slices that wait. */
  get slices(): number {
    let count = 0;
    for (const { slices } of this.#held.values()) {
      if (slices) count += Math.max(slices.removed.length, slices.added.length);
    }
    return count;
  }
}

/** Whether the change would leave the Service and one of its slices with different names for a port. */
export function isBetweenNames(
  applied: { readonly ports: readonly ServicePort[]; readonly slices: readonly SliceEntry[] },
  change: ServiceChange,
): boolean {
  const { ports = applied.ports, slices } = change;
  return isBehind(applied, ports, slices) || isAhead(applied.ports, ports, slices);
}

/** Whether the Service has renamed a port, and a slice has not. */
function isBehind(
  applied: { readonly ports: readonly ServicePort[]; readonly slices: readonly SliceEntry[] },
  ports: readonly ServicePort[],
  change: SliceChange | undefined,
): boolean {
  if (ports === applied.ports) return false;
  const gone = applied.ports.filter((port) => !has(ports, port));
  const fresh = ports.filter((port) => !has(applied.ports, port));
  const renamed = gone.flatMap((old) =>
    fresh
      .filter((port) => port.port === old.port && port.protocol === old.protocol)
      .map((to) => ({ old, to })),
  );
  if (renamed.length === 0) return false;
  const current = [
    ...applied.slices.filter((slice) => !change?.removed.includes(slice)),
    ...(change?.added ?? []),
  ];
  return current.some(({ lists }) => renamed.some(({ old, to }) => has(lists, old) && !has(lists, to)));
}

/** Whether a slice has a name that the Service does not have, in place of one that it has. */
function isAhead(
  applied: readonly ServicePort[],
  ports: readonly ServicePort[],
  change: SliceChange | undefined,
): boolean {
  if (!change) return false;
  return change.added.some((after) => {
    const before = change.removed.find(({ object }) => object.name === after.object.name);
    if (!before) return false;
    const lost = before.lists.filter(
      (list) => has(applied, list) && has(ports, list) && !has(after.lists, list),
    );
    return after.lists.some(
      (list) =>
        !has(ports, list) &&
        !has(before.lists, list) &&
        lost.some(({ protocol }) => protocol === list.protocol),
    );
  });
}

function has(
  ports: readonly Parameters<typeof isSamePort>[0][],
  port: Parameters<typeof isSamePort>[1],
): boolean {
  return ports.some((other) => isSamePort(other, port));
}

/** Makes one change of two that follow each other: what the first one added and the second one removed is in neither. */
function joinSlices(
  first: SliceChange | undefined,
  second: SliceChange | undefined,
): SliceChange | undefined {
  if (!first || !second) return first ?? second;
  const passing = new Set(first.added.filter((slice) => second.removed.includes(slice)));
  return {
    removed: [...first.removed, ...second.removed.filter((slice) => !passing.has(slice))],
    added: [...first.added.filter((slice) => !passing.has(slice)), ...second.added],
  };
}
