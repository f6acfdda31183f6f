import type { Family } from '../../src/model/ip.ts';
import { policyTableStories } from './stories/policy-table.ts';
import type { Story } from './story.ts';

/** Whether the contract is told in brief (KPT_CONTRACT=brief), for machines on which packets take long. */
export const isBrief = process.env.KPT_CONTRACT === 'brief';

/**
 * What is told in brief. A cluster with both families: everything, with packets of either family. Clusters with one
 * family, whose rules are the same: all that needs neither a program configured otherwise nor others to be silent,
 * and not the policy table, which is most of all packets.
 */
export function isToldInBrief(story: Story, families: readonly Family[]): boolean {
  if (families.length > 1) return true;
  return !story.alone && Object.keys(story.setting).length === 0 && !policyTableStories.includes(story);
}
