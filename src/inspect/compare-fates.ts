import type { Fate, Target } from '../backends/inspection.ts';

/** The kernel rounds probabilities to ten digits or 31 bits. */
const tolerance = 1e-6;

type Forward = Extract<Fate, { readonly action: 'forward' }>;

/**
 * How the fate that was found differs from the planned one, in sentences; empty when they agree. With `isBound`, the
 * kernel knows the client, and its only target may be any of the planned ones.
 */
export function fateDifferences(planned: Fate, found: Fate, isBound = false): readonly string[] {
  if (planned.action !== found.action) {
    return [
      `The plan is to ${words[planned.action]} the packet, but the kernel would ${words[found.action]} it.`,
    ];
  }
  if (planned.action !== 'forward' || found.action !== 'forward') return [];
  return forwardDifferences(planned, found, isBound);
}

const words = { forward: 'forward', drop: 'drop', reject: 'reject', pass: 'ignore' } as const;

function forwardDifferences(planned: Forward, found: Forward, isBound: boolean): string[] {
  const wanted = new Map(planned.targets.map((target) => [target.endpoint, target]));
  const actual = new Map(found.targets.map((target) => [target.endpoint, target]));
  const differences = [...actual.values()].flatMap((target) =>
    targetDifferences(wanted.get(target.endpoint), target),
  );
  if (planned.affinitySeconds !== found.affinitySeconds) {
    differences.push(
      `Client affinity should last ${planned.affinitySeconds} s, but lasts ${found.affinitySeconds} s in the kernel.`,
    );
  }
  if (isBound) return differences;
  for (const target of wanted.values()) {
    const probability = actual.get(target.endpoint)?.probability ?? 0;
    if (Math.abs(probability - target.probability) <= tolerance) continue;
    differences.push(
      `${target.endpoint} should get ${percent(target.probability)} of new connections and gets ${percent(probability)}.`,
    );
  }
  return differences;
}

function targetDifferences(wanted: Target | undefined, found: Target): string[] {
  if (!wanted) return [`${found.endpoint} gets connections and should not.`];
  if (wanted.masquerade === found.masquerade) return [];
  return [
    `${found.endpoint} should ${wanted.masquerade ? '' : 'not '}see an address of the node as the source, and does${wanted.masquerade ? ' not' : ''}.`,
  ];
}

function percent(probability: number): string {
  return `${Number((probability * 100).toFixed(4))} %`;
}
