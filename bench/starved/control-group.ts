import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const mount = '/sys/fs/cgroup';
const periodMicros = 100_000;
const controllers = ['cpu', 'cpuacct', 'memory'] as const;
type Controller = (typeof controllers)[number];

/** A control group of the kernel, version 2 or 1, for one program. */
export class ControlGroup {
  readonly #directories: Readonly<Record<Controller, string>>;
  readonly #isUnified: boolean;

  /** With a share of a core, a limit of CPU time. Throws an error that says why this machine cannot have it. */
  constructor(name: string, coreShare?: number) {
    this.#isUnified = existsSync(join(mount, 'cgroup.controllers'));
    const parents = this.#isUnified ? unifiedParents() : separateParents();
    this.#directories = {
      cpu: join(parents.cpu, name),
      cpuacct: join(parents.cpuacct, name),
      memory: join(parents.memory, name),
    };
    for (const directory of this.#all()) mkdirSync(directory, { recursive: true });
    if (coreShare !== undefined) this.#limit(Math.round(coreShare * periodMicros));
  }

  /** The command that runs another one in this group. */
  get through(): string[] {
    const files = this.#all().map((directory) => join(directory, 'cgroup.procs'));
    return ['sh', '-c', `for file in ${files.join(' ')}; do echo $$ >$file; done; exec "$@"`, 'sh'];
  }

  /** CPU time in ms of all processes that were in this group. */
  cpuMs(): number {
    if (!this.#isUnified) return this.#number('cpuacct', 'cpuacct.usage') / 1e6;
    return this.#stat('cpu', 'cpu.stat', 'usage_usec') / 1e3;
  }

  /** Memory in MB that the kubelet counts for a pod: all that is charged to the group, without idle file pages. */
  workingSetMB(): number {
    const [used, idle] = this.#isUnified
      ? [this.#number('memory', 'memory.current'), this.#stat('memory', 'memory.stat', 'inactive_file')]
      : [
          this.#number('memory', 'memory.usage_in_bytes'),
          this.#stat('memory', 'memory.stat', 'total_inactive_file'),
        ];
    return (used - idle) / 2 ** 20;
  }

  /** To be called after the program has ended. */
  async remove(): Promise<void> {
    for (const directory of this.#all()) await removeDirectory(directory);
  }

  #all(): string[] {
    return [...new Set(Object.values(this.#directories))];
  }

  #limit(quotaMicros: number): void {
    const { cpu } = this.#directories;
    const settings: Readonly<Record<string, string>> = this.#isUnified
      ? { 'cpu.max': `${quotaMicros} ${periodMicros}` }
      : { 'cpu.cfs_period_us': `${periodMicros}`, 'cpu.cfs_quota_us': `${quotaMicros}` };
    for (const [file, value] of Object.entries(settings)) writeFileSync(join(cpu, file), value);
  }

  #number(controller: Controller, file: string): number {
    return Number(readFileSync(join(this.#directories[controller], file), 'utf8'));
  }

  #stat(controller: Controller, file: string, field: string): number {
    const text = readFileSync(join(this.#directories[controller], file), 'utf8');
    return Number(new RegExp(`^${field} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  }
}

/** In version 2, one directory has all controllers, if its parent lets them through. */
function unifiedParents(): Record<Controller, string> {
  const missing = ['cpu', 'memory'].filter(
    (name) => !words(join(mount, 'cgroup.controllers')).includes(name),
  );
  if (missing.length > 0) throw new Error(`${mount} has no controller ${missing.join(', ')}`);
  writeFileSync(join(mount, 'cgroup.subtree_control'), '+cpu +memory');
  return { cpu: mount, cpuacct: mount, memory: mount };
}

/** In version 1, every controller has a tree of its own; the new groups are below those of this process. */
function separateParents(): Record<Controller, string> {
  const own = new Map(
    readFileSync('/proc/self/cgroup', 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [, names = '', path = ''] = line.split(':');
        return names.split(',').map((name): [string, string] => [name, path]);
      }),
  );
  const parent = (name: Controller): string => {
    const directory = join(mount, name, own.get(name) ?? '');
    if (!existsSync(directory)) throw new Error(`there is no control group ${directory}`);
    return directory;
  };
  return { cpu: parent('cpu'), cpuacct: parent('cpuacct'), memory: parent('memory') };
}

function words(file: string): string[] {
  return readFileSync(file, 'utf8').trim().split(/\s+/);
}

/** Processes that were killed stay in their group for a moment. */
async function removeDirectory(directory: string): Promise<void> {
  for (let attempt = 0; existsSync(directory); attempt++) {
    try {
      rmdirSync(directory);
    } catch (error) {
      if (attempt === 50) throw error;
      await sleep(100);
    }
  }
}
