import { describeKey } from '../../kernel/nft/describe-element.ts';
import type { Family } from '../../model/ip.ts';
import { servicePortName } from '../../model/service-port.ts';
import type { Difference } from '../inspection.ts';
import { type Bytes, readWord } from './bytes.ts';
import type { Value } from './compile.ts';
import { describeValue } from './describe.ts';
import { encodeKey } from './element-codec.ts';
import type { ElementSink } from './element-diff.ts';
import { keyOf } from './frontends.ts';
import { type SetName, setDefinition, valueKindOf } from './layout.ts';
import type { Placement } from './placement.ts';

interface Change {
  readonly set: SetName;
  readonly key: Bytes;
  owner: string | undefined;
  wanted?: Value;
  found?: Value;
}

/** Turns element operations into differences, each with the service port it belongs to. */
export class ElementDifferences implements ElementSink {
  readonly #family: Family;
  readonly #changes = new Map<string, Change>();
  /** Service port keys by frontend, by number of client affinity, and by the name that comments have. */
  readonly #owners = new Map<Bytes | number, string>();
  #owner: string | undefined;

  constructor(family: Family) {
    this.#family = family;
  }

  /** Names the service port whose elements follow. */
  ownedBy(placement: Placement | undefined): void {
    const port = placement?.plan.port;
    this.#owner = port?.key;
    if (!placement || !port) return;
    for (const frontend of placement.frontends) this.#owners.set(keyOf(frontend), port.key);
    if (placement.sticky) this.#owners.set(placement.sticky.service, port.key);
    this.#owners.set(servicePortName(port), port.key);
  }

  delete(set: SetName, key: Bytes, value: Value): void {
    this.#change(set, key).found = value;
  }

  add(set: SetName, key: Bytes, value: Value): void {
    this.#change(set, key).wanted = value;
  }

  /** By service port, what belongs to none first. */
  list(): Difference[] {
    const differences = [...this.#changes.values()].map((change) => this.#difference(change));
    return differences.sort(({ service: a = '' }, { service: b = '' }) => (a === b ? 0 : a < b ? -1 : 1));
  }

  #change(set: SetName, key: Bytes): Change {
    const place = `${set} ${key}`;
    const known = this.#changes.get(place);
    if (known) return known;
    const change: Change = { set, key, owner: this.#owner };
    this.#changes.set(place, change);
    return change;
  }

  #difference({ set, key, owner, wanted, found }: Change): Difference {
    return {
      service: owner ?? this.#ownerOf(set, key, found),
      kind: 'element',
      object: describeKey(setDefinition(this.#family, set), encodeKey(key)),
      wanted: wanted === undefined ? undefined : this.#valueText(set, wanted),
      found: found === undefined ? undefined : this.#valueText(set, found),
    };
  }

  /** Finds the service port of an unwanted element: by its frontend, by its number, or by the name in its comment. */
  #ownerOf(set: SetName, key: Bytes, found: Value | undefined): string | undefined {
    if (set.startsWith('sticky-') && key.length >= 4) {
      const byNumber = this.#owners.get(readWord(key) >>> 16);
      if (byNumber !== undefined) return byNumber;
    }
    const frontendLength = this.#family === 'IPv4' ? 12 : 24;
    const isNodePort = set.includes('nodeport');
    const comment = found === undefined ? '' : commentOf(set, found);
    return this.#owners.get(key.slice(0, isNodePort ? 8 : frontendLength)) ?? this.#owners.get(comment);
  }

  #valueText(set: SetName, value: Value): string {
    const text = describeValue(this.#family, set, value) || 'present';
    const comment = commentOf(set, value);
    return comment === '' ? text : `${text} comment "${comment}"`;
  }
}

function commentOf(set: SetName, value: Value): string {
  const kind = valueKindOf(set);
  if (kind === 'number') return value.slice(4);
  return kind === 'verdict' ? (value.split('\n')[1] ?? '') : '';
}
