import type { Family } from '../../src/model/ip.ts';
import type { Story } from './story.ts';

/** Whether the contract is told in brief (KPT_CONTRACT=brief), for machines on which packets take long. */
export const isBrief = process.env.KPT_CONTRACT === 'brief';

/**
 * In which of the families that a story fits it is told in brief: every story once, in one of the clusters that it
 * fits. What takes a program configured otherwise is told where both families are, since starts take longest.
 */
export function familiesInBrief(
  story: Story,
  cluster: readonly Family[],
  clusters: readonly (readonly Family[])[],
): readonly Family[] {
  const fitting = clusters.filter((families) => familiesOf(story, families).length > 0);
  const withBoth = fitting.filter((families) => families.length > 1);
  const isPlain = Object.keys(story.setting).length === 0;
  if (oneOf(isPlain || withBoth.length === 0 ? fitting : withBoth, story.id) !== cluster) return [];
  const families = familiesOf(story, cluster);
  return story.dualStackOnly ? families : families.filter((family) => family === oneOf(families, story.id));
}

/** The families of a cluster in which a story can be told. */
export function familiesOf(story: Story, cluster: readonly Family[]): readonly Family[] {
  if (story.dualStackOnly && cluster.length < 2) return [];
  return cluster.filter((family) => story.families?.includes(family) ?? true);
}

/** By the letters of a name: always the same, and neighbours do not simply take turns. */
function oneOf<T>(options: readonly T[], name: string): T | undefined {
  const sum = [...name].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 65_521, 0);
  return options[sum % options.length];
}
