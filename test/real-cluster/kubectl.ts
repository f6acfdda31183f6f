import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { succeed } from './processes.ts';

/** kubectl as the administrator of the cluster. */
export class Kubectl {
  readonly #kubeconfig: string;
  readonly #directory: string;

  /** `directory` is for manifests. */
  constructor(kubeconfig: string, directory: string) {
    this.#kubeconfig = kubeconfig;
    this.#directory = directory;
  }

  /** Returns the output. Throws an error with the output when kubectl fails. */
  run(...args: readonly string[]): Promise<string> {
    return succeed('kubectl', ['--kubeconfig', this.#kubeconfig, ...args], 600_000);
  }

  /** Reads one object, or a list of them. */
  async get<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.run('get', '--output=json', ...args)) as T;
  }

  /** Applies objects, which may also be text in YAML. */
  async apply(name: string, objects: string | readonly object[]): Promise<void> {
    const file = join(this.#directory, `${name}.yaml`);
    const text =
      typeof objects === 'string' ? objects : objects.map((object) => JSON.stringify(object)).join('\n---\n');
    writeFileSync(file, text);
    await this.run('apply', '--filename', file);
  }
}
