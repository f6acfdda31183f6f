import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { paced } from '../cluster/lab/pace.ts';
import { ctl } from '../ctl/ctl.ts';
import { moreText, total } from './descriptors.ts';
import { growth } from './model/tolerances.ts';
import { rulesetOf } from './ruleset.ts';
import type { Run, Size } from './run.ts';

/** Longer than an idle session of UDP, and than the intervals at which the program looks for such. */
const RESTING_MS = 2_500;

/**
 * Checks that the kernel holds what the program wants and what a start on an empty ruleset writes, and that the program
 * takes about as much memory and as many descriptors as one that has just started. Returns what that one takes.
 */
export async function assertLikeFreshStart(run: Run, operations: number): Promise<Size> {
  const { code, stdout, stderr } = await ctl('diff');
  assert.equal(code, 0, `kube-proxyctl diff:\n${stdout}${stderr}`);
  const [worn, wornSize] = [await rulesetOf(run.cluster.mode), await restingSize(run)];
  await run.cluster.stop();
  await run.cluster.wipe();
  await run.startProgram();
  await run.quiet();
  const [fresh, freshSize] = [await rulesetOf(run.cluster.mode), await restingSize(run)];
  assert.deepEqual(worn, fresh, 'the ruleset differs from that of a fresh start');
  const grown = wornSize.memoryMB - freshSize.memoryMB;
  assert.ok(
    grown <= growth.memoryMB || operations < growth.operations,
    `memory: ${wornSize.memoryMB} MB, after a fresh start ${freshSize.memoryMB} MB`,
  );
  const [opened, openedFresh] = [total(wornSize.descriptors), total(freshSize.descriptors)];
  assert.ok(
    opened - openedFresh <= growth.descriptors,
    `descriptors: ${opened}, after a fresh start ${openedFresh}; ` +
      moreText(wornSize.descriptors, freshSize.descriptors),
  );
  return freshSize;
}

/** Waits until the program closes no more descriptors: those of connections and sessions that have ended. */
async function restingSize(run: Run): Promise<Size> {
  for (let size = run.size(); ; ) {
    await sleep(paced(RESTING_MS));
    const next = run.size();
    if (total(next.descriptors) >= total(size.descriptors)) return next;
    size = next;
  }
}
