import type { Fate, Target } from './inspection.ts';

/** One way that a packet may take, and how likely it does. */
export type PossibleFate = { readonly probability: number } & (
  | { readonly action: 'forward'; readonly endpoint: string; readonly masquerade: boolean }
  | { readonly action: 'drop' | 'reject' | 'pass' }
);

/** Less than this is what is left over when probabilities are multiplied. */
const negligible = 1e-6;

/**
 * One fate out of all ways that a packet may take, and what it does not say, in words. Rules as they should be lead to
 * one action. Where they do not, forwarding counts first, with probabilities that do not sum up to 1; then the action
 * that is likeliest.
 */
export function fateOf(
  outcomes: readonly PossibleFate[],
  affinitySeconds: number,
): { readonly fate: Fate; readonly notes: readonly string[] } {
  const likely = outcomes.filter(({ probability }) => probability > negligible);
  const sums = new Map<Fate['action'], number>();
  for (const { action, probability } of likely) sums.set(action, (sums.get(action) ?? 0) + probability);
  const [likeliest = 'pass'] = [...sums].sort(([, a], [, b]) => b - a).map(([action]) => action);
  const action = sums.has('forward') ? 'forward' : likeliest;
  const notes = [...sums]
    .filter(([other]) => sums.size > 1 && other !== action)
    .map(([other, probability]) => `# with probability ${probability.toFixed(4)}: ${other}`);
  if (action !== 'forward') return { fate: { action }, notes };
  return { fate: { action, targets: targetsOf(likely), affinitySeconds }, notes };
}

function targetsOf(outcomes: readonly PossibleFate[]): Target[] {
  const targets = new Map<string, Target>();
  for (const outcome of outcomes) {
    if (outcome.action !== 'forward') continue;
    const { endpoint, masquerade, probability } = outcome;
    const key = `${endpoint} ${masquerade}`;
    const known = targets.get(key)?.probability ?? 0;
    targets.set(key, { endpoint, masquerade, probability: known + probability });
  }
  return [...targets].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, target]) => target);
}
