import { execFile } from 'node:child_process';
import type { Clock } from '../lib/clock.ts';
import type { Credential, Credentials } from './credentials.ts';
import { type Fields, isFields } from './fields.ts';
import type { KubeconfigExec } from './kubeconfig-file.ts';

const timeoutMs = 60_000;
const maxOutputBytes = 1024 * 1024;

export interface ExecPluginOptions {
  readonly exec: KubeconfigExec;
  /** Resolved: a path, or a name to be found in PATH. */
  readonly command: string;
  /** `spec.cluster` for a plugin that asked for it. */
  readonly cluster: Fields | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

interface Held {
  readonly credential: Credential;
  readonly expiresAt: number;
}

/**
 * Credentials from a program (client.authentication.k8s.io). They are kept until they expire or the server answers
 * 401; concurrent calls share one run.
 */
export class ExecPlugin implements Credentials {
  readonly #options: ExecPluginOptions;
  #held: Held | undefined;
  #running: Promise<Held> | undefined;

  constructor(options: ExecPluginOptions) {
    this.#options = options;
  }

  async current(): Promise<Credential> {
    if (this.#held !== undefined && this.#options.clock.now() < this.#held.expiresAt)
      return this.#held.credential;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    this.#held = await this.#running;
    return this.#held.credential;
  }

  refused(used: Credential): boolean {
    if (this.#held?.credential === used) this.#held = undefined;
    return true;
  }

  async #run(): Promise<Held> {
    const { exec, cluster, env } = this.#options;
    const info = {
      kind: 'ExecCredential',
      apiVersion: exec.apiVersion,
      spec: { ...(cluster === undefined ? {} : { cluster }), interactive: false },
    };
    const output = await this.#execute({
      ...env,
      ...Object.fromEntries(exec.env.map(({ name, value }) => [name, value])),
      KUBERNETES_EXEC_INFO: JSON.stringify(info),
    });
    return this.#read(output);
  }

  #execute(env: NodeJS.ProcessEnv): Promise<string> {
    const { command, exec } = this.#options;
    return new Promise((resolve, reject) => {
      const child = execFile(
        command,
        [...exec.args],
        { env, timeout: timeoutMs, maxBuffer: maxOutputBytes, killSignal: 'SIGKILL' },
        (error, stdout, stderr) => (error === null ? resolve(stdout) : reject(this.#failure(error, stderr))),
      );
      child.stdin?.end();
    });
  }

  #failure(error: Error & { code?: unknown; killed?: boolean }, stderr: string): Error {
    const { command, exec } = this.#options;
    if (error.code === 'ENOENT') {
      const hint = exec.installHint === '' ? '' : `: ${exec.installHint}`;
      return new Error(`exec plugin "${command}" not found${hint}`);
    }
    const said = stderr.trim() === '' ? '' : `: ${stderr.trim().slice(-500)}`;
    // The message of an exec error repeats the arguments, which may hold secrets.
    const how =
      error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
        ? 'wrote too much'
        : error.killed
          ? `did not finish within ${timeoutMs / 1000} s`
          : `failed with exit code ${String(error.code ?? 'unknown')}`;
    return new Error(`exec plugin "${command}" ${how}${said}`);
  }

  #read(output: string): Held {
    const { command, exec } = this.#options;
    const fail = (what: string) => new Error(`exec plugin "${command}": ${what}`);
    const answer = parseJson(output);
    if (!isFields(answer)) throw fail('its output is not a JSON object');
    if (answer.kind !== 'ExecCredential') throw fail('its output is not an ExecCredential');
    if (answer.apiVersion !== exec.apiVersion)
      throw fail(`its output is not of version "${exec.apiVersion}"`);
    const status = isFields(answer.status) ? answer.status : {};
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status;
    if ((cert === undefined) !== (key === undefined))
      throw fail('its certificate and key do not come together');
    const credential: { -readonly [K in keyof Credential]: Credential[K] } = {};
    if (typeof token === 'string' && token !== '') credential.token = token;
    if (typeof cert === 'string' && typeof key === 'string') credential.certificate = { cert, key };
    if (Object.keys(credential).length === 0) throw fail('its output has neither a token nor a certificate');
    const expiresAt = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Infinity;
    if (Number.isNaN(expiresAt)) throw fail('its expirationTimestamp is not a time');
    return { credential, expiresAt };
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
