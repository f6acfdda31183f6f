/** Words of the query language that our queries use, besides metrics and labels. */
const words = new Set(
  'sum max count by or rate increase histogram_quantile clamp_min label_values'.split(' '),
);

/** Names in a query that do not exist: metrics, their labels, functions. Empty when all exist. */
export function queryProblems(query: string, catalogue: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const problems: string[] = [];
  const labels = new Set<string>();
  const metrics = new Set<string>();
  if (!isBalanced(query)) problems.push('brackets do not match');
  // Strings, durations and variables of the dashboard are values.
  const text = query.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]/g, '');
  for (const [, metric = '', selector = ''] of text.matchAll(/([a-zA-Z_:][\w:]*)\{([^}]*)\}/g)) {
    metrics.add(metric);
    for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) {
      if (!catalogue.get(metric)?.has(label)) problems.push(`${metric} has no label ${label}`);
    }
  }
  const bare = text.replaceAll(/\{[^}]*\}/g, '');
  for (const [, list = ''] of bare.matchAll(/\bby\s*\(([^)]*)\)/g)) {
    for (const label of list.split(',')) labels.add(label.trim());
  }
  const rest = bare.replaceAll(/\bby\s*\([^)]*\)/g, 'by').replaceAll(/,\s*(job|instance)\)/g, ')');
  for (const [word] of rest.matchAll(/[a-zA-Z_:][\w:]*/g)) {
    if (words.has(word)) continue;
    metrics.add(word);
    if (!catalogue.has(word)) problems.push(`there is no metric ${word}`);
  }
  if (metrics.size === 0) problems.push('no metric is named');
  for (const label of labels) {
    for (const metric of metrics) {
      if (catalogue.has(metric) && !catalogue.get(metric)?.has(label))
        problems.push(`${metric} has no label ${label}`);
    }
  }
  return problems;
}

function isBalanced(query: string): boolean {
  const open: string[] = [];
  const pairs: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
  for (const char of query.replaceAll(/"[^"]*"/g, '')) {
    if ('([{'.includes(char)) open.push(char);
    else if (char in pairs && open.pop() !== pairs[char]) return false;
  }
  return open.length === 0;
}
