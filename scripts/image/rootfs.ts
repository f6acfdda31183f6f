/**
 * `rootfs.ts TARGET DIRECTORY`: makes the root file system of an image in a directory, by the steps of the Dockerfile, on
 * a Debian machine without a container engine. This machine takes the place of the base images: the build stage runs on
 * it, and packages that a stage installs are copied from it.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { commitOf, commitVariable } from '../product.ts';
import { copyDebian } from './debian-files.ts';
import { type Instruction, parseDockerfile, type Stage } from './dockerfile.ts';

const project = resolve(import.meta.dirname, '../..');
const buildImage = /^node:/;
const debianImage = /^debian:/;
const installation =
  /^apt-get update && apt-get install -y --no-install-recommends ([\w. -]+) && rm -rf \S+$/;

/** The settings that a stage gives to the container engine. */
export interface ImageSettings {
  readonly entrypoint: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The stages of the Dockerfile, in their order. */
export function imageStages(): Stage[] {
  return parseDockerfile(readFileSync(join(project, 'Dockerfile'), 'utf8'));
}

export function settingsOf({ instructions }: Stage): ImageSettings {
  const env = instructions.filter(({ name }) => name === 'ENV').flatMap(({ text }) => text.split(' '));
  const entrypoint = instructions.findLast(({ name }) => name === 'ENTRYPOINT')?.text ?? '[]';
  return {
    entrypoint: JSON.parse(entrypoint) as string[],
    env: Object.fromEntries(
      env.map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
    ),
  };
}

/** Makes root file systems. A stage from which others copy is made once. */
export class RootFileSystems {
  readonly #stages = imageStages();
  readonly #directory = mkdtempSync(join(tmpdir(), 'kpt-image-'));
  readonly #made = new Map<string, string>();

  /** Makes the root file system of a stage and returns its directory, which this object owns. */
  make(name: string): string {
    const made = this.#made.get(name);
    if (made !== undefined) return made;
    const stage = this.#stages.find((each) => each.name === name);
    if (!stage) throw new Error(`the Dockerfile has no stage ${name}`);
    const root = join(this.#directory, name);
    mkdirSync(root);
    this.#made.set(name, root);
    let workdir = '/';
    for (const instruction of stage.instructions) {
      if (instruction.name === 'WORKDIR') workdir = instruction.text;
      mkdirSync(join(root, workdir), { recursive: true });
      if (instruction.name === 'COPY') this.#copy(instruction, root, workdir);
      if (instruction.name === 'RUN') this.#run(instruction, stage, root, workdir);
    }
    return root;
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #copy({ flags, text }: Instruction, root: string, workdir: string): void {
    const from = flags.get('from');
    const base = from === undefined ? project : this.make(from);
    const words = text.split(' ');
    const target = words.pop() ?? '';
    for (const word of words) {
      const source = join(base, word);
      const intoDirectory = target.endsWith('/') && statSync(source).isFile();
      const destination = join(root, resolve(workdir, target), intoDirectory ? word : '');
      mkdirSync(dirname(destination), { recursive: true });
      cpSync(source, destination, { recursive: true, verbatimSymlinks: true });
    }
  }

  #run({ text, line }: Instruction, { base }: Stage, root: string, workdir: string): void {
    const packages = installation.exec(text)?.[1]?.split(' ');
    if (packages && debianImage.test(base)) {
      copyDebian(root, packages);
      return;
    }
    if (!buildImage.test(base)) throw new Error(`Dockerfile line ${line}: cannot run this here: ${text}`);
    const PATH = `${dirname(process.execPath)}:${process.env.PATH ?? ''}`;
    const env = {
      [commitVariable]: commitOf(project),
      ...process.env,
      PATH,
      npm_config_prefer_offline: 'true',
    };
    const { status, stdout, stderr } = spawnSync('sh', ['-c', text], {
      cwd: join(root, workdir),
      env,
      encoding: 'utf8',
    });
    if (status !== 0)
      throw new Error(`Dockerfile line ${line}: status ${status}: ${text}\n${stdout}${stderr}`);
  }
}

if (import.meta.main) {
  const [target, directory] = process.argv.slice(2);
  if (target === undefined || directory === undefined) throw new Error('usage: rootfs.ts TARGET DIRECTORY');
  const systems = new RootFileSystems();
  try {
    cpSync(systems.make(target), resolve(directory), { recursive: true, verbatimSymlinks: true });
  } finally {
    systems.remove();
  }
}
