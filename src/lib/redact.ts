/** What stands in the place of a secret. */
const REDACTED = '<redacted>';

/** Keys whose values are secrets, in JSON, YAML, headers and command lines. */
const secretKeys =
  '(?:access|bearer|id|refresh|bootstrap)?[-_]?token|password|passwd|secret|api[-_]?key|private[-_]?key|' +
  'client[-_]?key[-_]?data|client[-_]?certificate[-_]?data|certificate[-_]?authority[-_]?data|authorization';

/** Each replaces the secret and keeps what is around it. */
const rules: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // A PEM block, with line ends that may be escaped; without its end, up to the end of the text.
  [/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)/g, REDACTED],
  // The same in base64, as in a kubeconfig: every block begins with "-----BEGIN ".
  [/LS0tLS1CRUdJTi[A-Za-z0-9+/_=-]*/g, REDACTED],
  // A JSON web token, as Kubernetes gives to service accounts.
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${REDACTED}`],
  [
    new RegExp(
      `\\b(${secretKeys})((?:\\\\?["'])?\\s*[:=]\\s*(?:\\\\?["'])?)(?!<redacted>)[^\\s"'\\\\,;}&]+`,
      'gi',
    ),
    `$1$2${REDACTED}`,
  ],
  // A bootstrap token; a letter in both parts tells it from a number.
  [/\b(?=\d*[a-z])[a-z0-9]{6}\.(?=\d*[a-z])[a-z0-9]{16}\b/g, REDACTED],
  // User and password in a URL.
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/"'@]+@/gi, `$1${REDACTED}@`],
];

/** The text with `<redacted>` in the place of tokens, passwords, keys and certificates. */
export function redact(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of rules) clean = clean.replace(pattern, replacement);
  return clean;
}

/** The same for a text that arrives in pieces. Yields whole lines; PEM blocks may span several. */
export async function* redactLines(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  let rest = '';
  let isInBlock = false;
  const clean = (lines: string, lineEnd: string): string => {
    let kept = '';
    for (const line of lines.split('\n')) {
      const isEnd = isInBlock && line.includes('-----END ');
      if (isInBlock && !isEnd) continue;
      const text = isEnd ? line.replace(/^.*?-----END [A-Z0-9 ]+-----/, '') : line;
      isInBlock = /-----BEGIN (?!.*-----END )/.test(text);
      kept += redact(text) + lineEnd;
    }
    return kept;
  };
  for await (const piece of pieces) {
    rest += piece;
    const end = rest.lastIndexOf('\n');
    if (end < 0) continue;
    yield clean(rest.slice(0, end), '\n');
    rest = rest.slice(end + 1);
  }
  if (rest !== '') yield clean(rest, '');
}
