import type { Family } from '../../src/model/ip.ts';
import { policyTableStories } from './stories/policy-table.ts';
import type { Story } from './story.ts';

/** Whether the contract is told in brief (KPT_CONTRACT=brief), for machines on which packets take long. */
export const isBrief = process.env.KPT_CONTRACT === 'brief';

/**
 * In which of the families that a story fits it is told in brief. In a cluster with one family: what needs neither a
 * program configured otherwise nor others to be silent, and not the policy table, which is most of all packets. In a
 * cluster with both: everything, some with packets of the one and some of the other, but what is about having both.
 */
export function familiesInBrief(
  story: Story,
  fitting: readonly Family[],
  cluster: readonly Family[],
): readonly Family[] {
  if (cluster.length > 1) return story.dualStackOnly ? fitting : oneOf(fitting, story.id);
  const isPlain =
    !story.alone && Object.keys(story.setting).length === 0 && !policyTableStories.includes(story);
  return isPlain ? fitting : [];
}

/** By the letters of a name: always the same, and neighbours do not simply take turns. */
function oneOf<T>(options: readonly T[], name: string): readonly T[] {
  const sum = [...name].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 65_521, 0);
  return options.filter((_, index) => index === sum % options.length);
}
