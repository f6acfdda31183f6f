import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/lib/thrown.ts';
import { run } from '../program/run.ts';

/** Starts a program that keeps running. Its output goes to a file. */
export function startDaemon(log: string, command: string, args: readonly string[]): ChildProcess {
  const output = openSync(log, 'a');
  const child = spawn(command, args, { stdio: ['ignore', output, output], detached: true });
  closeSync(output);
  child.on('error', (error) => console.error(`${command}: ${error.message}`));
  return child;
}

/** Sends a signal to a program and waits until it has ended. */
export async function endDaemon(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((settle) => child.once('exit', settle));
  child.kill(signal);
  await ended;
}

/** The process that `unshare --fork` started. */
export function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}

/** Runs a command to its end and returns its output. Throws an error with the output when it fails. */
export async function succeed(command: string, args: readonly string[], timeout = 120_000): Promise<string> {
  const { code, signal, stdout, stderr } = await run(command, args, { timeout });
  if (code !== 0)
    throw new Error(`${command} ${args.join(' ')}: ended with ${code ?? signal}: ${stderr}${stdout}`);
  return stdout;
}

/** Repeats an action every half second until it does not throw; throws its last error after `seconds`. */
export async function untilSuccessful<T>(
  what: string,
  seconds: number,
  action: () => Promise<T>,
): Promise<T> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (performance.now() > end) throw new Error(`${what}: not in ${seconds} s: ${messageOf(error)}`);
    }
    await sleep(500);
  }
}
