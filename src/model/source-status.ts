import { count } from '../lib/count.ts';
import type { ResourceName } from './objects.ts';
import type { Problem } from './problem.ts';

/** The state of the watch of one resource. Times are milliseconds since the Unix epoch. */
export interface WatchStatus {
  readonly resource: ResourceName;
  /**
   * `connected`: the server sends changes. `connecting`: it does not, for a moment only, as after every watch that the
   * server ended. `broken`: it has not for some time.
   */
  readonly state: 'connected' | 'connecting' | 'broken';
  /** The beginning of the connection. Without one, until when all changes are known. */
  readonly since: number;
  /** Why the last attempt failed; undefined while connected, and before the first failure. */
  readonly reason: string | undefined;
  /** When the server last sent objects or a bookmark; undefined if it never did. */
  readonly lastEvent: number | undefined;
}

/** Objects that are not in effect, or not in their latest form, because their file cannot be used. */
export interface SourceError {
  readonly path: string;
  /** `line:column`; empty when unknown. */
  readonly position: string;
  readonly reason: string;
  readonly since: number;
}

/** Where objects come from, and how current they are. */
export interface SourceStatus {
  readonly kind: 'APIServer' | 'Manifests';
  /** The URL of the API server, without credentials, or the path of the manifests. */
  readonly location: string;
  /** One per resource; empty for manifests. */
  readonly watches: readonly WatchStatus[];
  readonly errors: readonly SourceError[];
}

/** For each watch 1 when it is connected, else 0. */
export function connectedSamples(watches: readonly WatchStatus[]) {
  return watches.map(({ resource, state }) => sample(resource, state === 'connected' ? 1 : 0));
}

/** For each watch the seconds for which changes may be missing; 0 while it is connected. */
export function staleSamples(watches: readonly WatchStatus[], now: number) {
  return watches.map(({ resource, state, since }) =>
    sample(resource, state === 'connected' ? 0 : Math.max(0, now - since) / 1000),
  );
}

function sample(resource: ResourceName, value: number) {
  return { labels: { resource: resource.toLowerCase() }, value };
}

/** What is wrong with a source: watches that are broken, one problem per cause, and files, one problem each. */
export function sourceProblems(source: SourceStatus): Problem[] {
  return [...watchProblems(source), ...fileProblems(source)];
}

function watchProblems({ location, watches }: SourceStatus): Problem[] {
  const broken = watches.filter(({ state }) => state === 'broken');
  return [...Map.groupBy(broken, ({ reason }) => reason)].map(([reason = 'no answer yet', group]) => {
    const resources = group.map(({ resource }) => resource.toLowerCase()).join(', ');
    return {
      kind: 'WatchBroken',
      since: Math.min(...group.map(({ since }) => since)),
      isOutage: false,
      text: `the API server ${location} sends no changes of ${resources}, so Services work as last known: ${reason}`,
    };
  });
}

function fileProblems({ errors }: SourceStatus): Problem[] {
  return [...Map.groupBy(errors, ({ path }) => path)].map(([path, [first, ...others]]) => {
    const { position = '', reason = '' } = first ?? {};
    const more = others.length > 0 ? ` (and ${count(others.length, 'further error')})` : '';
    return {
      kind: 'ManifestUnreadable',
      ...(first && { since: first.since }),
      isOutage: false,
      text: `the manifest ${path} is not (fully) in effect: ${position === '' ? '' : `${position}: `}${reason}${more}`,
    };
  });
}
