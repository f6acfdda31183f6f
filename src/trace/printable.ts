/**
 * A text that another program chose, without characters that control a terminal or hide or reorder what is shown; they
 * become `\u{…}`.
 */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`,
  );
}
