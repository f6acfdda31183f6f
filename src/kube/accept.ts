export interface ContentTypes {
  /** `clientConnection.acceptContentTypes`. */
  readonly accept: string;
  /** `clientConnection.contentType`. */
  readonly contentType: string;
}

/**
 * The Accept header for the configured content types. This client reads JSON only: other types are left out and
 * returned as `dropped`, for the log.
 */
export function acceptHeader(types: ContentTypes): {
  readonly header: string;
  readonly dropped: readonly string[];
} {
  const wanted = types.accept.trim() === '' ? `${types.contentType}, */*` : types.accept;
  const entries = wanted.split(',').map((entry) => entry.trim());
  const readable = entries.filter(isReadable);
  const dropped = entries.filter((entry) => entry !== '' && !isReadable(entry));
  const named = readable.some((entry) => entry.startsWith('application/json'));
  // With a wildcard alone, a later server might prefer another encoding.
  const header = named ? readable.join(', ') : ['application/json', ...readable].join(', ');
  return { header, dropped };
}

function isReadable(entry: string): boolean {
  const type = entry.split(';')[0]?.trim().toLowerCase();
  return type === 'application/json' || type === 'application/*' || type === '*/*';
}
