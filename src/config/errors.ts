/** A configuration that cannot be used. The message is upstream's where upstream has one. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Joins messages as Kubernetes does: one stands alone, several are listed in brackets without repeats. */
export function joinMessages(messages: readonly string[]): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? (distinct[0] ?? '') : `[${distinct.join(', ')}]`;
}
