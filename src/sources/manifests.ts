import type { Clock } from '../lib/clock.ts';
import { createIntern } from '../lib/intern.ts';
import { PathWatcher } from '../lib/path-watcher.ts';
import type { ResourceName } from '../model/objects.ts';
import type { Logger } from '../obs/log.ts';
import { type ManifestProblem, printProblem } from './manifests/documents.ts';
import { ManifestFiles } from './manifests/files.ts';
import { type Merged, mergeContents, type ObjectState } from './manifests/merge.ts';
import type { ObjectHandler, ObjectSource } from './source.ts';

export interface ManifestSourceOptions {
  /** A directory of `*.yaml`, `*.yml` and `*.json` files (not searched deeper), or one such file. */
  readonly path: string;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Objects from files. `start` may be called several times, for different resources or handlers. */
export interface ManifestSource extends ObjectSource {
  /** What is wrong right now; each was logged when it appeared. */
  problems(): readonly ManifestProblem[];
  /** Looks at the files now instead of when they are next seen to change. */
  refresh(): Promise<void>;
}

/**
 * Reads the manifests and follows their changes. Objects get the API's defaults and pass the proxy's selectors;
 * kinds it has no use for are skipped. A file with any fault keeps its last good content. Of two objects with
 * the same name the one in the first file, by name, wins. A legacy Endpoints object counts while its Service has
 * no EndpointSlice. When no Node is called `nodeName`, one without addresses or labels is delivered. Rejects
 * when the path cannot be read.
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
  /** The first complete list was delivered. */
  synced: boolean;
}

class FileSource implements ManifestSource {
  readonly #options: ManifestSourceOptions;
  readonly #files: ManifestFiles;
  readonly #watcher: PathWatcher;
  readonly #subscriptions: Subscription[] = [];
  #merged: Merged;
  #problems: readonly ManifestProblem[] = [];
  #useless: ReadonlySet<string> = new Set();
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

  /** Watches before it reads, so that no change falls in between. */
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
    // Not before the caller is done setting up.
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

  refresh(): Promise<void> {
    return this.#refresh(true);
  }

  /** One at a time; requests made while one waits for its turn are one. */
  #refresh(thorough: boolean): Promise<void> {
    this.#thorough ||= thorough;
    this.#waiting ??= this.#refreshing.then(async () => {
      const readEverything = this.#thorough;
      this.#thorough = false;
      this.#waiting = undefined;
      // A handler that throws must not end the following of later changes.
      await this.#look(readEverything).catch((error: unknown) =>
        this.#options.logger.error(error, 'Failed to deliver objects from manifests'),
      );
    });
    this.#refreshing = this.#waiting;
    return this.#refreshing;
  }

  async #look(thorough: boolean): Promise<void> {
    if (this.#stopped || !(await this.#files.refresh(thorough)) || this.#stopped) return;
    const before = this.#merged.state;
    this.#merged = mergeContents(this.#files.contents(), this.#options.nodeName, before);
    this.#report([...this.#files.problems(), ...this.#merged.problems]);
    this.#reportUseless();
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

  /** Logs what is new, and what is over. */
  #report(problems: readonly ManifestProblem[]): void {
    const { logger } = this.#options;
    const known = new Set(this.#problems.map(printProblem));
    const current = new Set(problems.map(printProblem));
    for (const text of current) {
      if (!known.has(text)) logger.error(new Error(text), 'Manifest not in effect');
    }
    const over = [...known].filter((text) => !current.has(text));
    if (over.length > 0) logger.info('Manifest problems resolved', { problems: over });
    this.#problems = problems;
  }

  /** One line per file and change. */
  #reportUseless(): void {
    const current = new Set<string>();
    for (const [file, { useless }] of this.#files.contents()) {
      const fresh = useless.filter((what) => !this.#useless.has(`${file} ${what}`));
      for (const what of useless) current.add(`${file} ${what}`);
      if (fresh.length > 0)
        this.#options.logger.info('Manifest holds objects that kube-proxy does not use', {
          file,
          ignored: fresh,
        });
    }
    this.#useless = current;
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
