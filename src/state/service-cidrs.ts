import { type Family, formatCIDR, parseCIDR } from '../model/ip.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import type { ServiceCIDRObject } from '../model/objects.ts';
import { sameStrings } from '../model/same-strings.ts';

/**
 * The address ranges of cluster IPs. A CIDR that several objects list stays until the last of them is deleted.
 */
export class ServiceCIDRs {
  readonly #onProblem: (problem: ObjectProblem) => void;
  readonly #byObject = new Map<string, readonly string[]>();
  #all: readonly string[] = [];
  #byFamily: Readonly<Record<Family, readonly string[]>> = { IPv4: [], IPv6: [] };

  constructor(onProblem: (problem: ObjectProblem) => void) {
    this.#onProblem = onProblem;
  }

  /** Applies an added, changed or (without `object`) deleted object; returns whether the CIDRs changed. */
  update(previous: ServiceCIDRObject | undefined, object: ServiceCIDRObject | undefined): boolean {
    const name = object?.name ?? previous?.name;
    if (name === undefined) return false;
    if (object) this.#byObject.set(name, this.#read(object));
    else this.#byObject.delete(name);
    const cidrs = [...new Set([...this.#byObject.values()].flat())].sort();
    if (sameStrings(cidrs, this.#all)) return false;
    this.#all = cidrs;
    this.#byFamily = {
      IPv4: cidrs.filter((cidr) => !cidr.includes(':')),
      IPv6: cidrs.filter((cidr) => cidr.includes(':')),
    };
    return true;
  }

  /** Canonical, sorted byte-wise, without duplicates; the same array until `update` returns true. */
  of(family: Family): readonly string[] {
    return this.#byFamily[family];
  }

  #read(object: ServiceCIDRObject): readonly string[] {
    const canonical: string[] = [];
    for (const [i, text] of object.cidrs.entries()) {
      const cidr = parseCIDR(text);
      if (cidr) canonical.push(formatCIDR(cidr));
      else {
        this.#onProblem({
          kind: 'ServiceCIDR',
          namespace: '',
          name: object.name,
          field: `spec.cidrs[${i}]`,
          value: text,
          fault: 'is not a CIDR',
        });
      }
    }
    return canonical;
  }
}
