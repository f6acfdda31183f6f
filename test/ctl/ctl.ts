import assert from 'node:assert/strict';
import { eventually, type Patience } from '../eventually.ts';
import { kubeProxyctl, type Outcome, run } from '../program/run.ts';

/** Runs kube-proxyctl as an operator does. */
export function ctl(...args: readonly string[]): Promise<Outcome> {
  return run(kubeProxyctl, args);
}

/** What it prints when it ends with the exit code that is expected. */
export async function printed(args: string, code = 0): Promise<string> {
  const outcome = await ctl(...args.split(' '));
  assert.equal(outcome.code, code, `${args}\n${outcome.stdout}${outcome.stderr}`);
  return outcome.stdout;
}

/** What it complains about when it ends with 1 and prints nothing. */
export async function complaint(args: string): Promise<string> {
  const { code, stdout, stderr } = await ctl(...args.split(' '));
  assert.deepEqual([code, stdout], [1, ''], stderr);
  return stderr;
}

/** Runs the command repeatedly until its output matches; each run takes as long as a program start. */
export function eventuallyTold(
  what: string,
  isTold: () => Promise<boolean>,
  patience: Patience = {},
): Promise<void> {
  return eventually(what, isTold, { withinMs: 60_000, everyMs: 50, ...patience });
}
