import { basename } from 'node:path';
import type { SystemFiles } from './system-files.ts';

/** A thread as the kernel names it in a notification. */
export interface Committer {
  /** Thread id in the initial pid namespace. */
  readonly pid: number;
  readonly processName: string;
}

type Files = Pick<SystemFiles, 'read'>;

/**
 * Names the process of a thread, and the program that started it when that is a kube-proxy: `nft[8670]`,
 * `nft[8670] of kube-proxy[7]`. Returns the name and id of the thread when the process has ended, or is in a pid
 * namespace that /proc does not show.
 */
export function processText({ pid, processName }: Committer, files: Files): string {
  const thread = readStatus(pid, files);
  // Elsewhere the id may be that of another process.
  if (thread?.name !== processName) return `${processName}[${pid}]`;
  const own = `${programName(thread.process, files) ?? processName}[${thread.process}]`;
  const parent = programName(thread.parent, files);
  return parent === 'kube-proxy' ? `${own} of kube-proxy[${thread.parent}]` : own;
}

interface ThreadStatus {
  readonly name: string;
  readonly process: number;
  readonly parent: number;
}

function readStatus(pid: number, files: Files): ThreadStatus | undefined {
  const status = readOrEmpty(`/proc/${pid}/status`, files);
  const field = (name: string) => new RegExp(`^${name}:\\t(.*)$`, 'm').exec(status)?.[1] ?? '';
  if (status === '') return undefined;
  return { name: field('Name'), process: Number(field('Tgid')), parent: Number(field('PPid')) };
}

/** The name of the program that a process runs; of the script when an interpreter runs one. */
function programName(pid: number, files: Files): string | undefined {
  const [program = '', ...args] = readOrEmpty(`/proc/${pid}/cmdline`, files).split('\0');
  if (program === '') return undefined;
  // bin/launch.js runs a program from its sources.
  const script = args.find((arg) => !arg.startsWith('-') && basename(arg) !== 'launch.js');
  const isInterpreted = /^(node|nodejs|python[\d.]*|perl|sh|bash|dash)$/.test(basename(program));
  return basename(isInterpreted && script ? script : program).replace(/\.[cm]?[jt]s$/, '');
}

function readOrEmpty(path: string, files: Files): string {
  try {
    return files.read(path);
  } catch {
    return '';
  }
}
