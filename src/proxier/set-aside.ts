import { count } from '../lib/count.ts';
import type { Family } from '../model/ip.ts';
import { describeProblem, type ObjectProblem } from '../model/object-problem.ts';
import type { Problem } from '../model/problem.ts';
import type { Logger } from '../obs/log.ts';
import type { Sample } from '../obs/metrics.ts';

export interface SetAsideOptions {
  /** Reports the fault in the cluster, to the owner of the object. */
  readonly announce: (subject: ObjectName, text: string) => void;
  readonly logger: Logger;
}

export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A service port that the kernel refused. */
export interface Refusal {
  /** `namespace/name:port/PROTOCOL` */
  readonly key: string;
  readonly error: Error;
}

/** One object that is not (fully) programmed, with all its faults. */
export interface SetAsideObject {
  readonly family: Family;
  readonly reason: 'invalid' | 'refused';
  /** Kind, namespace and name, or the key of a service port. */
  readonly object: string;
  readonly problems: readonly string[];
}

/** Texts of the faults, by object. */
type Faults = Map<string, Set<string>>;

/**
 * Objects that are not, or not fully, programmed, because they are invalid or because the kernel refused them. Each
 * fault is logged and announced once while it lasts. Other objects are programmed as usual.
 */
export class SetAside {
  readonly #options: SetAsideOptions;
  readonly #invalid = new Map<Family, Faults>();
  readonly #refused = new Map<Family, Faults>();
  /** Faults found the last time this object was read. */
  #earlier: ReadonlySet<string> = new Set();

  constructor(options: SetAsideOptions) {
    this.#options = options;
  }

  /** Runs `read`, which calls `report` for each fault of the object; forgets faults that it does not report. */
  reading(object: ObjectName, read: () => void): void {
    this.#earlier = this.#forget(nameOf(object));
    try {
      read();
    } finally {
      this.#earlier = new Set();
    }
  }

  /** Records that a part of an object is invalid. */
  report(family: Family, problem: ObjectProblem): void {
    const object = nameOf(problem);
    const text = describeProblem(problem);
    const isKnown =
      this.#earlier.has(text) || [...this.#invalid.values()].some((faults) => faults.get(object)?.has(text));
    if (!isKnown) this.#announce(problem, text);
    const faults: Faults = this.#invalid.get(family) ?? new Map();
    this.#invalid.set(family, faults.set(object, (faults.get(object) ?? new Set()).add(text)));
  }

  /** Records the service ports refused in the last sync of the family; forgets earlier ones. */
  refused(family: Family, refusals: readonly Refusal[]): void {
    const before = this.#refused.get(family);
    const now: Faults = new Map();
    for (const { key, error } of refusals) {
      const text = `service port ${key}: ${error.message}`;
      if (!before?.get(key)?.has(text)) this.#announce(serviceOf(key), text);
      now.set(key, (now.get(key) ?? new Set()).add(text));
    }
    this.#refused.set(family, now);
  }

  /** Every object that is not (fully) programmed now. */
  objects(): SetAsideObject[] {
    return [...objectsOf('invalid', this.#invalid), ...objectsOf('refused', this.#refused)];
  }

  /** One problem for all. EndpointSlices do not count: they may legally contain what no proxy can use. */
  problems(): Problem[] {
    const counted = this.objects().filter(
      ({ reason, object }) => reason === 'refused' || object.startsWith('Service '),
    );
    const { size } = new Set(counted.map(({ object }) => object));
    if (size === 0) return [];
    const text = `${count(size, 'object')} not (fully) programmed; the reasons are below`;
    return [{ kind: 'ObjectsNotProgrammed', isOutage: false, text }];
  }

  /** One sample for each of `objects()`. Labels: ip_family, reason, object. */
  samples(): Sample[] {
    return this.objects().map(({ family, reason, object }) => ({
      labels: { ip_family: family, reason, object },
      value: 1,
    }));
  }

  #announce(subject: ObjectName, text: string): void {
    this.#options.logger.error(undefined, 'Object not (fully) programmed', { problem: text });
    this.#options.announce(subject, text);
  }

  /** Returns the faults of the object that it forgot. */
  #forget(object: string): Set<string> {
    const forgotten = new Set<string>();
    for (const faults of this.#invalid.values()) {
      for (const text of faults.get(object) ?? []) forgotten.add(text);
      faults.delete(object);
    }
    return forgotten;
  }
}

function objectsOf(
  reason: SetAsideObject['reason'],
  byFamily: ReadonlyMap<Family, Faults>,
): SetAsideObject[] {
  return [...byFamily].flatMap(([family, faults]) =>
    [...faults].map(([object, texts]) => ({ family, reason, object, problems: [...texts] })),
  );
}

function nameOf({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace}/${name}`;
}

function serviceOf(key: string): ObjectName {
  const [namespace = '', rest = ''] = key.split('/');
  return { kind: 'Service', namespace, name: rest.split(':')[0] ?? '' };
}
