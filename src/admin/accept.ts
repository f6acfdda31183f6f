/** One alternative of an Accept header. */
export interface MediaRange {
  /** `type/subtype`, lower case. */
  readonly type: string;
  readonly params: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** Returns the alternatives of an Accept header with a quality above 0, best first, else in their order. */
export function parseAccept(header: string | undefined): MediaRange[] {
  return splitHeader(header)
    .map(({ value, params }) => ({ type: value, params, quality: quality(params) }))
    .filter((range) => range.quality > 0)
    .sort((a, b) => b.quality - a.quality);
}

/**
 * Chooses the content encoding as Go's Prometheus handler does: the best quality wins, then the order of `offers`.
 * Returns undefined if the header names none of them.
 */
export function negotiateEncoding<T extends string>(
  header: string | undefined,
  offers: readonly T[],
): T | undefined {
  const wanted = splitHeader(header).map(({ value, params }) => ({ value, quality: quality(params) }));
  let best: T | undefined;
  let bestQuality = 0;
  for (const offer of offers) {
    for (const { value, quality } of wanted) {
      if (quality > bestQuality && (value === offer || value === '*')) {
        best = offer;
        bestQuality = quality;
      }
    }
  }
  return best;
}

function splitHeader(header: string | undefined): { value: string; params: Map<string, string> }[] {
  return (header ?? '')
    .split(',')
    .map((part) => {
      const [value = '', ...params] = part.split(';').map((text) => text.trim());
      return { value: value.toLowerCase(), params: new Map(params.map(splitParam)) };
    })
    .filter(({ value }) => value !== '');
}

function splitParam(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 0) return [text.toLowerCase(), ''];
  return [
    text.slice(0, at).trim().toLowerCase(),
    text
      .slice(at + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1'),
  ];
}

function quality(params: ReadonlyMap<string, string>): number {
  const text = params.get('q');
  if (text === undefined) return 1;
  const value = Number(text);
  return value >= 0 && value <= 1 ? value : 0;
}
