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
/** For everything but traffic: watches, files, netlink and listening sockets. */
const reservedFiles = 1_000;

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

/** How many connections may be open with so many files: each takes two. */
export function limitsFor(openFiles: number): Limits {
  const files = Math.min(openFiles, countedFiles);
  const total = Math.max(16, Math.floor((files - Math.min(reservedFiles, files / 4)) / 2));
  return { total, perService: Math.max(16, Math.floor(total * 0.75)) };
}
