import type { Sockets } from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import type { Limits } from './admission.ts';

/** As many as upstream asks for. */
const wantedFiles = 64_000;
/**
 * What a process can have on an ordinary kernel. Some container runtimes set the limit to a thousand times as much,
 * which says that nobody set one: memory ends long before, and for every service at once.
 */
const countedFiles = 1 << 20;
/** For everything but traffic: watches, servers, files and netlink. */
const reservedFiles = 1_000;
/** What one service may have of all connections, and listeners of all files. */
const largestShare = 0.75;

/** The limit of open files that is in force, and what stood in the way of a higher one. */
export interface OpenFiles {
  readonly limit: number;
  readonly problem?: string;
}

/** Raises the limit of open files as far as wanted and allowed; never lowers it. */
export function raiseOpenFileLimit(sockets: Pick<Sockets, 'openFileLimit' | 'setOpenFileLimit'>): OpenFiles {
  const [soft, hard] = sockets.openFileLimit();
  if (soft >= wantedFiles) return { limit: soft };
  const raised = sockets.setOpenFileLimit(Math.max(soft, wantedFiles), Math.max(hard, wantedFiles));
  if (raised >= 0) return { limit: wantedFiles };
  if (hard > soft) sockets.setOpenFileLimit(hard, hard);
  const limit = sockets.openFileLimit()[0];
  return { limit, problem: `cannot raise the limit of open files to ${wantedFiles}: ${errnoName(-raised)}` };
}

/** What may be open of so many files. Half of the reserve is for listeners that come late. */
export function limitsFor(openFiles: number): Limits {
  const counted = Math.min(openFiles, countedFiles);
  const reserved = Math.min(reservedFiles, counted / 4);
  const files = Math.max(32, Math.floor(counted - reserved));
  return {
    files,
    listening: Math.floor(files * largestShare),
    spare: Math.floor(reserved / 2),
    perService: Math.floor(connectionsIn(files) * largestShare),
  };
}

/** A connection takes two files, as long as it carries little. */
export function connectionsIn(files: number): number {
  return Math.floor(files / 2);
}
