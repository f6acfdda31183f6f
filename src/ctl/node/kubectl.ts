import { spawn } from 'node:child_process';
import { hasCode } from '../../lib/thrown.ts';
import type { Environment } from '../terminal.ts';

/** How kubectl ended, and its output. */
export interface KubectlEnd {
  readonly isSuccess: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running kubectl. */
export interface RunningKubectl {
  /** Rejects when kubectl cannot be started. */
  readonly ended: Promise<KubectlEnd>;
  kill(): void;
}

/** Starts kubectl; `onOutput` gets all of stdout so far, each time that there is more. Tests pass a function of their own. */
export type StartKubectl = (args: readonly string[], onOutput?: (stdout: string) => void) => RunningKubectl;

/** Enough for the pods of thousands of nodes. A forward that runs for days may write more, which is of no use. */
const maxStdout = 100 << 20;
const maxStderr = 1 << 20;

/** Returns a function that starts the kubectl of the PATH with these global flags. The child never outlives this process. */
export function kubectlStarter(globalFlags: readonly string[], env: Environment): StartKubectl {
  return (args, onOutput = () => {}) => {
    const child = spawn('kubectl', [...args, ...globalFlags], {
      env: { ...env },
      // A credential plugin may ask for a password.
      stdio: ['inherit', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < maxStdout) stdout += text;
      onOutput(stdout);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-maxStderr);
    });
    const kill = () => void child.kill();
    const release = beforeExit(kill);
    const ended = new Promise<KubectlEnd>((resolve, reject) => {
      child.on('error', (error) => reject(hasCode(error, 'ENOENT') ? missing(error) : error));
      child.on('close', (status) => {
        resolve({ isSuccess: status === 0, stdout, stderr });
      });
    }).finally(release);
    // The caller may await it later than kubectl fails.
    ended.catch(() => {});
    return { ended, kill };
  };
}

function missing(cause: Error): Error {
  return new Error('-N reaches the node through kubectl, and there is no kubectl in the PATH', { cause });
}

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Calls `action` when this process exits or a signal ends it. Returns a function that undoes this. */
function beforeExit(action: () => void): () => void {
  const handlers = endingSignals.map((signal) => {
    const handler = () => {
      action();
      release();
      // Without this handler the signal has its usual effect, unless somebody else handles it.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    };
    return { signal, handler };
  });
  const release = () => {
    process.off('exit', action);
    for (const { signal, handler } of handlers) process.off(signal, handler);
  };
  process.on('exit', action);
  for (const { signal, handler } of handlers) process.on(signal, handler);
  return release;
}
