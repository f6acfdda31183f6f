import { quote } from '../lib/go-quote.ts';
import { messageOf } from '../lib/thrown.ts';

const needsNoEscape = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Returns an error's own message, without its causes. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : describe(error);
  return error.message === '' ? error.name : error.message;
}

/** Returns the text as a Go string literal. Nearly all log text needs no escapes. */
export function quoteText(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : quote(text);
}

/** Formats one attribute in klog's text form, with its leading blank. */
export function formatAttribute(key: string, value: unknown): string {
  const shown = simplify(value);
  if (typeof shown === 'string') {
    return shown.includes('\n') ? ` ${key}=${formatBlock(shown)}` : ` ${key}=${quoteText(shown)}`;
  }
  return ` ${key}=${describe(shown)}`;
}

/** Formats a text of several lines as klog does: every line indented by a tab between `<` and ` >`. */
function formatBlock(text: string): string {
  const lines = text.endsWith('\n') ? text.slice(0, -1) : text;
  return `<\n${lines.replace(/^/gm, '\t')}\n >`;
}

/** Returns the value as one line of JSON. Never throws: a log call must not fail because of its arguments. */
export function describe(value: unknown): string {
  try {
    return JSON.stringify(value, replaceForJson) ?? String(value);
  } catch (error) {
    return quoteText(`cannot be shown: ${messageOf(error)}`);
  }
}

/** A JSON.stringify replacer for values that JSON lacks. */
export function replaceForJson(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return errorText(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  return value;
}

function simplify(value: unknown): unknown {
  if (value instanceof Error) return errorText(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString();
  if (isObjectReference(value)) return value.namespace ? `${value.namespace}/${value.name}` : value.name;
  return value;
}

/** Whether the value has exactly a namespace and a name; it is then shown as `namespace/name`. */
function isObjectReference(value: unknown): value is { namespace: string; name: string } {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  return (
    'namespace' in value &&
    'name' in value &&
    typeof value.namespace === 'string' &&
    typeof value.name === 'string'
  );
}
