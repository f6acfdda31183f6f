import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** What the kubectl of tests finds. */
export interface FakeCluster {
  readonly pods: readonly {
    readonly name: string;
    readonly phase?: string;
    readonly isTerminating?: boolean;
  }[];
  /** The right that the user does not have. */
  readonly denied?: 'list' | 'portforward';
}

export const onePod: FakeCluster = { pods: [{ name: 'kube-proxy-1' }] };

/** A call of the kubectl of tests. */
export interface KubectlCall {
  readonly pid: number;
  readonly args: readonly string[];
}

/** A directory for the PATH with a kubectl that reaches a proxy in this network namespace. */
export class FakeKubectl {
  readonly directory = mkdtempSync(join(tmpdir(), 'kpt-kubectl-'));
  readonly #cluster = join(this.directory, 'cluster.json');

  constructor() {
    const program = join(this.bin, 'kubectl');
    const script = resolve(import.meta.dirname, 'fake-kubectl.ts');
    mkdirSync(this.bin);
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`);
    chmodSync(program, 0o755);
    this.meets(onePod);
  }

  get bin(): string {
    return join(this.directory, 'bin');
  }

  get env(): NodeJS.ProcessEnv {
    return { PATH: `${this.bin}:${process.env.PATH}`, FAKE_CLUSTER: this.#cluster };
  }

  /** Sets what later calls find, and forgets the calls so far. */
  meets(cluster: FakeCluster): void {
    writeFileSync(this.#cluster, JSON.stringify(cluster));
    rmSync(`${this.#cluster}.calls`, { force: true });
  }

  /** Makes the next connection through a forwarded port break, and kubectl end. */
  breakOnce(): void {
    writeFileSync(`${this.#cluster}.break`, '');
  }

  calls(): KubectlCall[] {
    const file = `${this.#cluster}.calls`;
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    return lines.map((line) => JSON.parse(line) as KubectlCall);
  }

  /** The calls that still run. */
  running(): KubectlCall[] {
    return this.calls().filter(({ pid }) => {
      try {
        process.kill(pid, 0);
        return true;
      } catch {
        return false;
      }
    });
  }

  endAll(): void {
    for (const { pid } of this.running()) process.kill(pid, 'SIGKILL');
  }

  close(): void {
    this.endAll();
    rmSync(this.directory, { recursive: true });
  }
}
