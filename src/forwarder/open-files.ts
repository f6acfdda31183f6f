import type { Sockets } from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import type { Limits } from './admission.ts';

/** The limit that upstream asks for. */
const wantedFiles = 64_000;
/**
 * The most that an ordinary kernel allows a process. Some container runtimes set a thousand times as much, which means
 * no limit; memory would run out first, for all services at once.
 */
const countedFiles = 1 << 20;
/** Files kept for everything but traffic: watches, servers, netlink. */
const reservedFiles = 1_000;
/** Largest share of all connections for one service, and of all files for listeners. */
const largestShare = 0.75;

/** The limit on open files in force, and why it could not be raised as wanted. */
export interface OpenFiles {
  readonly limit: number;
  readonly problem?: string;
}

/** Raises the limit on open files as far as wanted and allowed; never lowers it. */
export function raiseOpenFileLimit(sockets: Pick<Sockets, 'openFileLimit' | 'setOpenFileLimit'>): OpenFiles {
  const [soft, hard] = sockets.openFileLimit();
  if (soft >= wantedFiles) return { limit: soft };
  const raised = sockets.setOpenFileLimit(Math.max(soft, wantedFiles), Math.max(hard, wantedFiles));
  if (raised >= 0) return { limit: wantedFiles };
  if (hard > soft) sockets.setOpenFileLimit(hard, hard);
  const limit = sockets.openFileLimit()[0];
  return { limit, problem: `cannot raise the limit on open files to ${wantedFiles}: ${errnoName(-raised)}` };
}

/** Divides the open files. Half of the reserve is for listeners that arrive when all other files are taken. */
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

/** A connection takes two files (more only while splice is used). */
export function connectionsIn(files: number): number {
  return Math.floor(files / 2);
}
