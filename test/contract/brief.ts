import type { Family } from '../../src/model/ip.ts';
import type { Story } from './story.ts';

/** Whether to run the brief contract (KPT_CONTRACT=brief), for slow machines. */
export const isBrief = process.env.KPT_CONTRACT === 'brief';

/**
 * The families in which the brief contract runs a story in this cluster. It runs every story once, in one of the
 * clusters that the story fits. A story with settings of its own runs in a cluster with both families, because starts
 * of the program take longest.
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

/** The families of a cluster in which a story can run. */
export function familiesOf(story: Story, cluster: readonly Family[]): readonly Family[] {
  if (story.dualStackOnly && cluster.length < 2) return [];
  return cluster.filter((family) => story.families?.includes(family) ?? true);
}

/** Chooses by a hash of the name: the same choice in every run, spread evenly over the options. */
function oneOf<T>(options: readonly T[], name: string): T | undefined {
  const sum = [...name].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 65_521, 0);
  return options[sum % options.length];
}
