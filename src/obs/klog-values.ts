import { quote } from '../lib/go-quote.ts';
import { messageOf } from '../lib/thrown.ts';

const needsNoEscape = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** An error's own text. It says what matters of its causes; the chain itself is for debuggers. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : describe(error);
  return error.message === '' ? error.name : error.message;
}

/** The text as a Go string literal; nearly all log text takes the short way. */
export function quoteText(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : quote(text);
}

/** One attribute in klog's text form, with its leading blank. */
export function formatAttribute(key: string, value: unknown): string {
  const shown = simplify(value);
  if (typeof shown === 'string') {
    return shown.includes('\n') ? ` ${key}=${formatBlock(shown)}` : ` ${key}=${quoteText(shown)}`;
  }
  return ` ${key}=${describe(shown)}`;
}

/** klog writes a text of several lines readably: every line indented by a tab between `<` and ` >`. */
function formatBlock(text: string): string {
  const lines = text.endsWith('\n') ? text.slice(0, -1) : text;
  return `<\n${lines.replace(/^/gm, '\t')}\n >`;
}

/** The value as one line of JSON, whatever it is: a log call must not fail over what it was given. */
export function describe(value: unknown): string {
  try {
    return JSON.stringify(value, replaceForJson) ?? String(value);
  } catch (error) {
    return quoteText(`cannot be shown: ${messageOf(error)}`);
  }
}

/** Gives the values JSON lacks a form; used at every level of a structure. */
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

/** Exactly a namespace and a name: a reference to an object, shown as `namespace/name`. */
function isObjectReference(value: unknown): value is { namespace: string; name: string } {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  return (
    'namespace' in value &&
    'name' in value &&
    typeof value.namespace === 'string' &&
    typeof value.name === 'string'
  );
}
