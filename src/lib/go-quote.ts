const namedEscapes = new Map<string, string>([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

/** Quotes a text as a Go string literal in double quotes (strconv.Quote). */
export function quote(text: string): string {
  let quoted = '';
  // Go strings hold bytes and cannot carry half a surrogate pair; encoding one yields U+FFFD.
  for (const char of text.toWellFormed()) quoted += namedEscapes.get(char) ?? escapeRune(char);
  return `"${quoted}"`;
}

/** Formats a list of strings like Go's %q: `["a" "b"]`. */
export function quoteList(items: readonly string[]): string {
  return `[${items.map(quote).join(' ')}]`;
}

/** Encodes JSON as Go does: it also escapes five characters that are unsafe inside HTML and scripts. */
export function goJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Quotes one character as a Go rune literal in single quotes (%q of a rune). */
export function quoteRune(code: number): string {
  const char = String.fromCodePoint(code);
  if (char === "'") return "'\\''";
  return char === '"' ? "'\"'" : `'${quote(char).slice(1, -1)}'`;
}

function escapeRune(char: string): string {
  if (isPrintable(char)) return char;
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x20 || code === 0x7f) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

/** The pattern takes milliseconds to compile, and most texts are plain ASCII. */
function isPrintable(char: string): boolean {
  return (char >= ' ' && char <= '~') || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(char);
}
