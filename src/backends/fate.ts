import type { Fate, Target } from './inspection.ts';

/** One possible fate of a packet, and its probability. */
export type PossibleFate = { readonly probability: number } & (
  | { readonly action: 'forward'; readonly endpoint: string; readonly masquerade: boolean }
  | { readonly action: 'drop' | 'reject' | 'pass' }
);

/** Smaller probabilities are rounding errors. */
const negligible = 1e-6;

/**
 * Combines all possible fates of a packet into one. Notes say in words what that leaves out. Correct rules lead to
 * one action. Otherwise forwarding wins, with probabilities that do not sum up to 1; then the likeliest action.
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
