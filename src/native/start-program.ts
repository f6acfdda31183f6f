import { type Call, type Koffi, loadKoffi } from './koffi.ts';
import { EINTR } from './sockets.ts';
import { SystemError } from './system-error.ts';

/** A program that was started. The descriptors belong to the caller. */
export interface StartedProgram {
  readonly pid: number;
  /** The write end of its standard input; undefined when that is empty. */
  readonly input: number | undefined;
  readonly output: number;
  readonly errors: number;
  /**
   * Resolves to its wait status when it has ended; until then no other process has this pid, and it can be killed. Waits in
   * a worker thread, so call it when the program has closed its outputs.
   */
  ended(): Promise<number>;
}

/**
 * Starts a program of the PATH with the environment of this process. Throws a SystemError. Call it on the main
 * thread: the caller must know the pid before events about the program arrive.
 */
export type StartProgram = (program: string, args: readonly string[], hasInput: boolean) => StartedProgram;

/**
 * Node starts programs with fork: that copies the page tables of this process, which then faults on every page that it
 * writes. posix_spawn copies nothing, so a start costs the same for a small process and a large one.
 */
export async function loadStartProgram(): Promise<StartProgram> {
  const starter = new Starter(await loadKoffi());
  return (...what) => starter.start(...what);
}

const O_CLOEXEC = 0o2000000;
const POSIX_SPAWN_SETSIGDEF = 0x04;
const SIGPIPE = 13;
const P_PID = 1;
const WEXITED = 4;
const WNOWAIT = 0x01000000;
/** More than any C library needs for file actions, attributes or a set of signals. */
const structSize = 512;

type Pipe = readonly [readEnd: number, writeEnd: number];

class Starter {
  readonly #koffi: Koffi;
  readonly #spawn: Call<[Int32Array, string, Uint8Array, Uint8Array, (string | null)[], (string | null)[]]>;
  readonly #waitid: Call<[number, number, null, number]>;
  readonly #waitpid: Call<[number, Int32Array, number]>;
  readonly #pipe2: Call<[Int32Array, number]>;
  readonly #close: Call<[number]>;
  readonly #initActions: Call<[Uint8Array]>;
  readonly #addOpen: Call<[Uint8Array, number, string, number, number]>;
  readonly #addDup: Call<[Uint8Array, number, number]>;
  readonly #destroyActions: Call<[Uint8Array]>;
  readonly #attributes: Uint8Array;

  constructor(koffi: Koffi) {
    const lib = koffi.load(null);
    const actions = 'int posix_spawn_file_actions_';
    this.#koffi = koffi;
    this.#spawn = lib.func(
      'int posix_spawnp(void *pid, const char *file, const void *actions, const void *attr, const char **argv, const char **envp)',
    );
    this.#waitid = lib.func('int waitid(int type, uint32_t id, void *info, int options)');
    this.#waitpid = lib.func('int waitpid(int pid, void *status, int options)');
    this.#pipe2 = lib.func('int pipe2(void *ends, int flags)');
    this.#close = lib.func('int close(int fd)');
    this.#initActions = lib.func(`${actions}init(void *actions)`);
    this.#addOpen = lib.func(
      `${actions}addopen(void *actions, int fd, const char *path, int flags, uint32_t mode)`,
    );
    this.#addDup = lib.func(`${actions}adddup2(void *actions, int from, int to)`);
    this.#destroyActions = lib.func(`${actions}destroy(void *actions)`);
    this.#attributes = attributes(lib);
  }

  start(program: string, args: readonly string[], hasInput: boolean): StartedProgram {
    const pipes: Pipe[] = [];
    const kept = new Set<number>();
    try {
      for (let i = 0; i < (hasInput ? 3 : 2); i++) pipes.push(this.#pipe());
      const [output, errors, input] = pipes as [Pipe, Pipe, Pipe?];
      const pid = this.#spawned(program, args, [input?.[0], output[1], errors[1]]);
      const mine = { input: input?.[1], output: output[0], errors: errors[0] };
      for (const fd of Object.values(mine)) if (fd !== undefined) kept.add(fd);
      return { pid, ...mine, ended: () => this.#ended(pid) };
    } finally {
      for (const fd of pipes.flat()) if (!kept.has(fd)) this.#close(fd);
    }
  }

  #spawned(
    program: string,
    args: readonly string[],
    [input, output, errors]: readonly [number | undefined, number, number],
  ): number {
    const actions = new Uint8Array(structSize);
    const pid = new Int32Array(1);
    const environment = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
    this.#initActions(actions);
    if (input === undefined) this.#addOpen(actions, 0, '/dev/null', 0, 0);
    else this.#addDup(actions, input, 0);
    this.#addDup(actions, output, 1);
    this.#addDup(actions, errors, 2);
    const [argv, envp] = [
      [program, ...args, null],
      [...environment, null],
    ];
    const errno = this.#spawn(pid, program, actions, this.#attributes, argv, envp);
    this.#destroyActions(actions);
    if (errno !== 0) throw new SystemError(`start ${program}`, errno);
    return pid[0] ?? 0;
  }

  async #ended(pid: number): Promise<number> {
    // Leaves the status to the main thread: once it was read, another process may get the pid.
    const options = WEXITED | WNOWAIT;
    await new Promise<void>((resolve, reject) => {
      const wait = () =>
        this.#waitid.async(P_PID, pid, null, options, (error: unknown, result: number) => {
          if (error) return reject(error);
          const errno = result < 0 ? this.#koffi.errno() : 0;
          if (errno === EINTR) wait();
          else if (errno !== 0) reject(new SystemError('waitid', errno));
          else resolve();
        });
      wait();
    });
    return this.#status(pid);
  }

  /** The wait status of a program that has ended. */
  #status(pid: number): number {
    const status = new Int32Array(1);
    if (this.#waitpid(pid, status, 0) < 0) throw new SystemError('waitpid', this.#koffi.errno());
    return status[0] ?? 0;
  }

  #pipe(): Pipe {
    const ends = new Int32Array(2);
    if (this.#pipe2(ends, O_CLOEXEC) < 0) throw new SystemError('pipe2', this.#koffi.errno());
    return [ends[0] ?? 0, ends[1] ?? 0];
  }
}

/** What differs from this process: a program that writes to a closed pipe ends. Node ignores that signal. */
function attributes(lib: ReturnType<Koffi['load']>): Uint8Array {
  const [made, signals] = [new Uint8Array(structSize), new Uint8Array(structSize)];
  lib.func('int posix_spawnattr_init(void *attr)')(made);
  lib.func('int sigemptyset(void *set)')(signals);
  lib.func('int sigaddset(void *set, int signal)')(signals, SIGPIPE);
  lib.func('int posix_spawnattr_setsigdefault(void *attr, const void *set)')(made, signals);
  lib.func('int posix_spawnattr_setflags(void *attr, int16_t flags)')(made, POSIX_SPAWN_SETSIGDEF);
  return made;
}
