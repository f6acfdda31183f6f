import type { Clock } from '../lib/clock.ts';
import { createIntern } from '../lib/intern.ts';
import { PathWatcher } from '../lib/path-watcher.ts';
import type { ResourceName } from '../model/objects.ts';
import type { SourceStatus } from '../model/source-status.ts';
import type { Logger } from '../obs/log.ts';
import { type ManifestProblem, printProblem } from './manifests/documents.ts';
import { ManifestFiles } from './manifests/files.ts';
import { type Merged, mergeContents, type ObjectState } from './manifests/merge.ts';
import type { ObjectHandler, ObjectSource } from './source.ts';

export interface ManifestSourceOptions {
  /** A directory of `*.yaml`, `*.yml` and `*.json` files, without subdirectories, or one file. */
  readonly path: string;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Objects from files. `start` may be called several times with different resources or handlers. */
export interface ManifestSource extends ObjectSource {
  /** The current problems; each was logged when it appeared. */
  problems(): readonly ManifestProblem[];
  /** Reads the files now instead of at their next change. */
  refresh(): Promise<void>;
}

/**
 * Reads the manifests and follows their changes. Objects get the API's defaults and must match the proxy's selectors;
 * other kinds are skipped. An invalid object keeps its last valid form; the rest of its file is in use. A file that is
 * not YAML keeps its last content. Of two objects with the same name, the one in the first file by name wins. A legacy Endpoints object is used while its Service has no EndpointSlice. Without
 * a Node named `nodeName`, one without addresses and labels is delivered. Rejects when the path cannot be read.
 */
export async function manifestSource(options: ManifestSourceOptions): Promise<ManifestSource> {
  const { path, nodeName, clock } = options;
  const files = new ManifestFiles(path, { intern: createIntern(), nodeName, clock });
  const source = new FileSource(options, files);
  await source.open();
  return source;
}

/** Finds changes that the kernel does not report: in targets of symbolic links. */
const pollMs = 10_000;

const nothing: ObjectState = {
  nodes: new Map(),
  serviceCIDRs: new Map(),
  services: new Map(),
  endpointSlices: new Map(),
};

interface Subscription {
  readonly resources: readonly ResourceName[];
  readonly handler: ObjectHandler;
  /** Whether the first complete list was delivered. */
  synced: boolean;
}

class FileSource implements ManifestSource {
  readonly #options: ManifestSourceOptions;
  readonly #files: ManifestFiles;
  readonly #watcher: PathWatcher;
  readonly #subscriptions: Subscription[] = [];
  #merged: Merged;
  #problems: readonly ManifestProblem[] = [];
  /** When each problem appeared, by its text. */
  #since: ReadonlyMap<string, number> = new Map();
  #unused: ReadonlySet<string> = new Set();
  #refreshing: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  #thorough = false;
  #stopped = false;

  constructor(options: ManifestSourceOptions, files: ManifestFiles) {
    this.#options = options;
    this.#files = files;
    this.#merged = mergeContents([], options.nodeName, nothing);
    const { path, clock, logger } = options;
    this.#watcher = new PathWatcher({
      path,
      clock,
      pollMs,
      onChange: (cause) => void this.#refresh(cause === 'event'),
      onError: (error) => logger.error(error, 'Cannot watch the manifests; polling them', { path, pollMs }),
    });
  }

  /** Watches before reading, so that no change is missed. */
  async open(): Promise<void> {
    this.#watcher.start();
    await this.#refresh(true);
    if (!this.#files.pathProblem) return;
    await this.stop();
    throw new Error(`cannot read manifests at ${printProblem(this.#files.pathProblem)}`);
  }

  start(resources: readonly ResourceName[], handler: ObjectHandler): void {
    const subscription = { resources, handler, synced: false };
    this.#subscriptions.push(subscription);
    // After the caller has finished its set-up.
    queueMicrotask(() => this.#deliverAll(subscription));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#watcher.close();
    await this.#refreshing;
  }

  problems(): readonly ManifestProblem[] {
    return this.#problems;
  }

  status(): SourceStatus {
    const errors = this.#problems.map((problem) => ({
      path: this.#files.pathOf(problem),
      position: problem.position ? `${problem.position.line}:${problem.position.column}` : '',
      reason: problem.message,
      since: this.#since.get(printProblem(problem)) ?? this.#options.clock.now(),
    }));
    return { kind: 'Manifests', location: this.#options.path, watches: [], errors };
  }

  refresh(): Promise<void> {
    return this.#refresh(true);
  }

  /** Reads the files, one read at a time; requests that wait for the same read share it. */
  #refresh(thorough: boolean): Promise<void> {
    this.#thorough ||= thorough;
    this.#waiting ??= this.#refreshing.then(async () => {
      const readEverything = this.#thorough;
      this.#thorough = false;
      this.#waiting = undefined;
      // Later changes must be followed even if a handler throws.
      await this.#readAndDeliver(readEverything).catch((error: unknown) =>
        this.#options.logger.error(error, 'Failed to deliver objects from manifests'),
      );
    });
    this.#refreshing = this.#waiting;
    return this.#refreshing;
  }

  async #readAndDeliver(thorough: boolean): Promise<void> {
    if (this.#stopped || !(await this.#files.refresh(thorough)) || this.#stopped) return;
    const before = this.#merged.state;
    this.#merged = mergeContents(this.#files.contents(), this.#options.nodeName, before);
    this.#report([...this.#files.problems(), ...this.#merged.problems]);
    this.#reportUnused();
    for (const { resources, handler, synced } of this.#subscriptions) {
      if (synced) for (const name of resources) deliverChanges(name, before, this.#merged.state, handler);
    }
  }

  #deliverAll(subscription: Subscription): void {
    if (this.#stopped) return;
    const { resources, handler } = subscription;
    for (const resource of resources) {
      deliverChanges(resource, nothing, this.#merged.state, handler);
      handler.synced(resource);
    }
    subscription.synced = true;
  }

  /** Logs new and resolved problems. */
  #report(problems: readonly ManifestProblem[]): void {
    const { logger, clock } = this.#options;
    const known = this.#since;
    const current = new Map(problems.map(printProblem).map((text) => [text, known.get(text) ?? clock.now()]));
    for (const text of current.keys()) {
      if (!known.has(text)) logger.error(new Error(text), 'Manifest not in effect');
    }
    const over = [...known.keys()].filter((text) => !current.has(text));
    if (over.length > 0) logger.info('Manifest problems resolved', { problems: over });
    this.#problems = problems;
    this.#since = current;
  }

  /** Logs objects that kube-proxy does not use, once per file and kind. */
  #reportUnused(): void {
    const current = new Set<string>();
    for (const [file, { unused }] of this.#files.contents()) {
      const fresh = unused.filter((what) => !this.#unused.has(`${file} ${what}`));
      for (const what of unused) current.add(`${file} ${what}`);
      if (fresh.length > 0)
        this.#options.logger.info('Manifest holds objects that kube-proxy does not use', {
          file,
          ignored: fresh,
        });
    }
    this.#unused = current;
  }
}

function deliverChanges<R extends ResourceName>(
  resource: R,
  before: ObjectState,
  after: ObjectState,
  handler: ObjectHandler,
): void {
  for (const [key, object] of before[resource]) {
    if (!after[resource].has(key)) handler.remove(resource, object);
  }
  for (const [key, object] of after[resource]) {
    const previous = before[resource].get(key);
    if (previous !== object) handler.upsert(resource, object, previous);
  }
}
