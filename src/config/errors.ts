/** A configuration that cannot be used. The message names what is wrong, in upstream's words where it has them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Several messages as Kubernetes joins them: one stands alone, more are listed in brackets; repeats are dropped. */
export function joinMessages(messages: readonly string[]): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? (distinct[0] ?? '') : `[${distinct.join(', ')}]`;
}
