import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const cgroups = '/sys/fs/cgroup';
const cgroupPrefix = 'kpt-cluster-';
/** Folders that manifests mount from the node; the container runtime would make a missing one on this machine. */
const mounted = ['/lib/modules'];
const madeFolders = 'made-folders';

/** The control group of a run, above those of its containers. */
export function cgroupOf(run: number): string {
  return `${cgroupPrefix}${run}`;
}

/** Makes what a run needs outside its namespaces, and notes it in the folder of the run. */
export function prepareMachine(run: number, state: string): void {
  const missing = mounted.filter((folder) => !existsSync(folder));
  writeFileSync(join(state, madeFolders), missing.join('\n'));
  for (const folder of missing) mkdirSync(folder);
  for (const hierarchy of hierarchies()) mkdirSync(join(hierarchy, cgroupOf(run)), { recursive: true });
}

/** Removes what a run made outside its namespaces. All of its processes have ended. */
export function removeTraces(run: number, state: string): void {
  for (const hierarchy of hierarchies()) removeCgroup(join(hierarchy, cgroupOf(run)));
  if (existsSync(join(state, madeFolders))) {
    for (const folder of readFileSync(join(state, madeFolders), 'utf8').split('\n').filter(Boolean))
      removeEmpty(folder);
  }
  rmSync(state, { recursive: true, force: true });
}

/** Removes the traces of runs that were killed. */
export function removeAbandoned(work: string): void {
  const states = globSync('run-*', { cwd: work });
  const groups = hierarchies().flatMap((hierarchy) => globSync(`${cgroupPrefix}*`, { cwd: hierarchy }));
  const runs = [...states, ...groups].map((name) => Number(name.replace(/^.*-/, '')));
  for (const run of new Set(runs)) {
    if (!existsSync(`/proc/${run}`)) removeTraces(run, join(work, `run-${run}`));
  }
}

/** One per controller in version 1, a single one in version 2. */
function hierarchies(): string[] {
  if (existsSync(join(cgroups, 'cgroup.controllers'))) return [cgroups];
  return readdirSync(cgroups, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(cgroups, name));
}

/** A control group can be removed when it has no other below it. */
function removeCgroup(directory: string): void {
  if (!existsSync(directory)) return;
  spawnSync('find', [directory, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'], { stdio: 'ignore' });
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Somebody else uses it by now.
  }
}
