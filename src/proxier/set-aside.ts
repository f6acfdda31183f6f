import type { Family } from '../model/ip.ts';
import { describeProblem, type ObjectProblem } from '../model/object-problem.ts';
import type { Logger } from '../obs/log.ts';
import type { Sample } from '../obs/metrics.ts';

export interface SetAsideOptions {
  /** Tells the owner of the object, in the cluster. */
  readonly announce: (subject: ObjectName, text: string) => void;
  readonly logger: Logger;
}

export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A service port that the kernel would not take. */
export interface Refusal {
  /** `namespace/name:port/PROTOCOL` */
  readonly key: string;
  readonly error: Error;
}

/** What is wrong with objects, by object. */
type Faults = Map<string, Set<string>>;

/**
 * Objects, or parts of them, that are not programmed: because they are wrong, or because the kernel refused them. Each
 * fault is logged and announced once while it lasts; nothing else is held up by it.
 */
export class SetAside {
  readonly #options: SetAsideOptions;
  readonly #invalid = new Map<Family, Faults>();
  readonly #refused = new Map<Family, Faults>();
  /** What was wrong with the object that is being read anew, before. */
  #earlier: ReadonlySet<string> = new Set();

  constructor(options: SetAsideOptions) {
    this.#options = options;
  }

  /** Runs `read`, which reports afresh what is wrong with the object; faults it no longer has are forgotten. */
  reading(object: ObjectName, read: () => void): void {
    this.#earlier = this.#forget(nameOf(object));
    try {
      read();
    } finally {
      this.#earlier = new Set();
    }
  }

  /** Part of an object is wrong. */
  report(family: Family, problem: ObjectProblem): void {
    const object = nameOf(problem);
    const text = describeProblem(problem);
    const isKnown =
      this.#earlier.has(text) || [...this.#invalid.values()].some((faults) => faults.get(object)?.has(text));
    if (!isKnown) this.#tell(problem, text);
    const faults: Faults = this.#invalid.get(family) ?? new Map();
    this.#invalid.set(family, faults.set(object, (faults.get(object) ?? new Set()).add(text)));
  }

  /** These service ports, and no others, were refused in the last sync of the family. */
  refused(family: Family, refusals: readonly Refusal[]): void {
    const before = this.#refused.get(family);
    const now: Faults = new Map();
    for (const { key, error } of refusals) {
      const text = `service port ${key}: ${error.message}`;
      if (!before?.get(key)?.has(text)) this.#tell(serviceOf(key), text);
      now.set(key, new Set([text]));
    }
    this.#refused.set(family, now);
  }

  /** One sample for every object that is set aside now. Labels: ip_family, reason, object. */
  samples(): Sample[] {
    return [...samplesOf('invalid', this.#invalid), ...samplesOf('refused', this.#refused)];
  }

  #tell(subject: ObjectName, text: string): void {
    this.#options.logger.error(undefined, 'Object is not, or in part not, programmed', { problem: text });
    this.#options.announce(subject, text);
  }

  #forget(object: string): Set<string> {
    const forgotten = new Set<string>();
    for (const faults of this.#invalid.values()) {
      for (const text of faults.get(object) ?? []) forgotten.add(text);
      faults.delete(object);
    }
    return forgotten;
  }
}

function samplesOf(reason: string, byFamily: ReadonlyMap<Family, Faults>): Sample[] {
  return [...byFamily].flatMap(([ip_family, faults]) =>
    [...faults.keys()].map((object) => ({ labels: { ip_family, reason, object }, value: 1 })),
  );
}

function nameOf({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace}/${name}`;
}

function serviceOf(key: string): ObjectName {
  const [namespace = '', rest = ''] = key.split('/');
  return { kind: 'Service', namespace, name: rest.split(':')[0] ?? '' };
}
