/** The chain that a rule line appends to. */
export function chainOf(rule: string): string {
  return rule.slice(3, rule.indexOf(' ', 3));
}

/** Chains whose rules, taken in order, differ between two lists of rule lines. */
export function differingChains(before: readonly string[], after: readonly string[]): Set<string> {
  const differing = new Set<string>();
  if (sameLines(before, after)) return differing;
  const was = byChain(before);
  const is = byChain(after);
  for (const [chain, rules] of is) {
    if (!sameLines(was.get(chain), rules)) differing.add(chain);
    was.delete(chain);
  }
  for (const chain of was.keys()) differing.add(chain);
  return differing;
}

export function sameLines(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.length === b.length && a.every((line, i) => line === b[i]);
}

function byChain(rules: readonly string[]): Map<string, string[]> {
  const chains = new Map<string, string[]>();
  for (const rule of rules) {
    const chain = chainOf(rule);
    const known = chains.get(chain);
    if (known) known.push(rule);
    else chains.set(chain, [rule]);
  }
  return chains;
}
