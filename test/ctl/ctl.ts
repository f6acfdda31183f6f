import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { paced } from '../cluster/lab/pace.ts';
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

/** Tries again until it holds; what holds after a sync holds within a generous while. */
export async function eventually(
  what: string,
  holds: () => Promise<boolean>,
  pauseMs = paced(50),
): Promise<void> {
  const attempts = 100;
  for (let i = 0; i < attempts; i++) {
    if (await holds()) return;
    await sleep(pauseMs);
  }
  assert.fail(`${what} did not come about`);
}
