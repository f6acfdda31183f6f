import assert from 'node:assert/strict';
import { eventually, type Patience } from '../eventually.ts';
import { kubeProxyctl, type Outcome, run } from '../program/run.ts';

/** Runs kube-proxyctl as an operator does. */
export function ctl(...args: readonly string[]): Promise<Outcome> {
  return run(kubeProxyctl, args);
}

/** Runs it, checks its exit code, and returns what it prints. */
export async function printed(args: string, code = 0): Promise<string> {
  const outcome = await ctl(...args.split(' '));
  assert.equal(outcome.code, code, `${args}\n${outcome.stdout}${outcome.stderr}`);
  return outcome.stdout;
}

/** Runs it, checks that it exits with 1 and prints nothing to stdout, and returns its error text. */
export async function complaint(args: string): Promise<string> {
  const { code, stdout, stderr } = await ctl(...args.split(' '));
  assert.deepEqual([code, stdout], [1, ''], stderr);
  return stderr;
}

/** Polls until a condition that runs kube-proxyctl holds. Waits long, because each check starts a program. */
export function eventuallyReported(
  what: string,
  condition: () => Promise<boolean>,
  patience: Patience = {},
): Promise<void> {
  return eventually(what, condition, { withinMs: 60_000, everyMs: 50, ...patience });
}
