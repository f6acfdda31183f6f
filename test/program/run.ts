import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { paced } from '../cluster/lab/pace.ts';

/** The command as an operator starts it. */
export const kubeProxy = resolve(import.meta.dirname, '../../bin/kube-proxy');
export const kubeProxyctl = resolve(import.meta.dirname, '../../bin/kube-proxyctl');
export const kubectlCompletion = resolve(import.meta.dirname, '../../bin/kubectl_complete-kube_proxy');
export const kubectlPlugin = resolve(import.meta.dirname, '../../bin/kubectl-kube_proxy');

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Killed after this many ms, so that a program that should have ended fails the test instead of hanging it. */
  readonly timeout?: number;
}

/** Runs a command to its end, without the variables by which a program finds the API server of its cluster. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { KUBERNETES_SERVICE_HOST: _host, KUBERNETES_SERVICE_PORT: _port, ...inherited } = process.env;
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...inherited, TZ: 'UTC', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeout ?? paced(20_000),
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((settle, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => settle({ code, signal, stdout, stderr }));
  });
}

/** Log lines without level, time, pid and source position: `"message" key="value"`. */
export function logMessages(stderr: string): string[] {
  return stderr
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^\]]*\] /, ''));
}
