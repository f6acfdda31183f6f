import type { Family } from '../model/ip.ts';
import { describeProblem, type ObjectProblem } from '../model/object-problem.ts';
import type { Logger } from '../obs/log.ts';
import type { Gauge } from '../obs/metrics.ts';

export interface SetAsideOptions {
  /** Labels: ip_family, reason. */
  readonly gauge: Gauge;
  /** Tells the owner of the object, in the cluster. */
  readonly announce: (problem: ObjectProblem, text: string) => void;
  readonly logger: Logger;
}

/**
 * Objects, or parts of them, that cannot be programmed because they are wrong. Each fault is logged and announced
 * once while it lasts; the others of the object and of the cluster are not held up by it.
 */
export class SetAside {
  readonly #options: SetAsideOptions;
  readonly #faults = new Map<Family, Map<string, Set<string>>>();
  /** What was wrong with the object that is being read anew, before. */
  #earlier: ReadonlySet<string> = new Set();

  constructor(options: SetAsideOptions) {
    this.#options = options;
  }

  /** Runs `read`, which reports afresh what is wrong with the object; faults it no longer has are forgotten. */
  reading(object: ObjectKind, read: () => void): void {
    this.#earlier = this.#forget(keyOf(object));
    try {
      read();
    } finally {
      this.#earlier = new Set();
    }
  }

  report(family: Family, problem: ObjectProblem): void {
    const key = keyOf(problem);
    const text = describeProblem(problem);
    const isKnown =
      this.#earlier.has(text) || [...this.#faults.values()].some((map) => map.get(key)?.has(text));
    if (!isKnown) {
      this.#options.logger.error(undefined, 'Object is in part set aside', { problem: text });
      this.#options.announce(problem, text);
    }
    const ofFamily = this.#faults.get(family) ?? new Map<string, Set<string>>();
    this.#faults.set(family, ofFamily.set(key, (ofFamily.get(key) ?? new Set<string>()).add(text)));
    this.#count(family, ofFamily);
  }

  #forget(key: string): Set<string> {
    const forgotten = new Set<string>();
    for (const [family, ofFamily] of this.#faults) {
      const texts = ofFamily.get(key);
      if (!texts) continue;
      for (const text of texts) forgotten.add(text);
      ofFamily.delete(key);
      this.#count(family, ofFamily);
    }
    return forgotten;
  }

  #count(family: Family, ofFamily: ReadonlyMap<string, unknown>): void {
    this.#options.gauge.set(ofFamily.size, { ip_family: family, reason: 'invalid' });
  }
}

type ObjectKind = Pick<ObjectProblem, 'kind' | 'namespace' | 'name'>;

function keyOf({ kind, namespace, name }: ObjectKind): string {
  return `${kind} ${namespace}/${name}`;
}
