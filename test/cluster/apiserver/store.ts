import { encodeContent } from '../protobuf/envelope.ts';
import { resources, type ServedResource } from './resources.ts';

/** An object as clients send and receive it. */
export interface RawObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** One version of an object. Each encoding is made once for all clients, without kind and apiVersion, as in a list. */
export class StoredObject {
  readonly resource: ServedResource;
  readonly namespace: string;
  readonly version: number;
  readonly raw: RawObject;
  #json: string | undefined;
  #protobuf: Buffer | undefined;

  constructor(resource: ServedResource, namespace: string, version: number, raw: RawObject) {
    this.resource = resource;
    this.namespace = namespace;
    this.version = version;
    this.raw = { ...raw, metadata: { ...raw.metadata, resourceVersion: String(version) } };
  }

  get key(): string {
    return keyOf(this.namespace, this.raw.metadata.name);
  }

  get json(): string {
    this.#json ??= JSON.stringify(this.raw);
    return this.#json;
  }

  get protobuf(): Buffer {
    this.#protobuf ??= encodeContent(resources[this.resource].kind, this.raw);
    return this.#protobuf;
  }

  /** A deletion carries the last form of the object under the version of the deletion. */
  at(version: number): StoredObject {
    return new StoredObject(this.resource, this.namespace, version, this.raw);
  }
}

/** One change of an object: its versions before and after. */
export interface Change {
  readonly resource: ServedResource;
  readonly version: number;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}

export type ChangeListener = (change: Change) => void;

export function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** Objects with one version counter for all, and a history that can be compacted, like etcd. */
export class Store {
  readonly #objects = new Map<ServedResource, Map<string, StoredObject>>();
  readonly #history = new Map<ServedResource, Change[]>();
  readonly #listeners = new Set<ChangeListener>();
  #version = 1000;
  /** Changes at or before this version are forgotten. */
  #compactedAt = 1000;

  constructor() {
    for (const resource of Object.keys(resources) as ServedResource[]) {
      this.#objects.set(resource, new Map());
      this.#history.set(resource, []);
    }
  }

  get version(): number {
    return this.#version;
  }

  get compactedAt(): number {
    return this.#compactedAt;
  }

  put(resource: ServedResource, object: RawObject): StoredObject {
    const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object;
    const namespace = resources[resource].namespaced ? (metadata.namespace ?? 'default') : '';
    const key = keyOf(namespace, metadata.name);
    const version = ++this.#version;
    const raw: RawObject = { metadata: { ...metadata, ...(namespace !== '' && { namespace }) }, ...rest };
    const after = new StoredObject(resource, namespace, version, raw);
    const before = this.#all(resource).get(key);
    this.#all(resource).set(key, after);
    this.#record({ resource, version, before, after });
    return after;
  }

  /** Returns false if the object does not exist. */
  delete(resource: ServedResource, namespace: string, name: string): boolean {
    const key = keyOf(namespace, name);
    const before = this.#all(resource).get(key);
    if (before === undefined) return false;
    this.#all(resource).delete(key);
    this.#record({ resource, version: ++this.#version, before, after: undefined });
    return true;
  }

  get(resource: ServedResource, key: string): StoredObject | undefined {
    return this.#all(resource).get(key);
  }

  /** All objects of the resource, in key order. */
  list(resource: ServedResource): StoredObject[] {
    return [...this.#all(resource).values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Changes after `version`, oldest first. */
  changesSince(resource: ServedResource, version: number): Change[] {
    return this.#changes(resource).filter((change) => change.version > version);
  }

  /** Forgets all history, so that any older version or continue token has expired. */
  compact(): void {
    this.#compactedAt = this.#version;
    for (const changes of this.#history.values()) changes.length = 0;
  }

  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(change: Change): void {
    this.#changes(change.resource).push(change);
    for (const listener of this.#listeners) listener(change);
  }

  #all(resource: ServedResource): Map<string, StoredObject> {
    const objects = this.#objects.get(resource);
    if (objects === undefined) throw new Error(`no resource is called ${resource}`);
    return objects;
  }

  #changes(resource: ServedResource): Change[] {
    const changes = this.#history.get(resource);
    if (changes === undefined) throw new Error(`no resource is called ${resource}`);
    return changes;
  }
}
