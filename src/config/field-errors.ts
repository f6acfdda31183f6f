import { formatDuration } from '../lib/duration.ts';
import { goJson, quote } from '../lib/go-quote.ts';

type BadValue = string | number | bigint | readonly string[] | Readonly<Record<string, boolean>>;

/** Messages about fields, in Kubernetes' forms and in the order they were found. */
export class FieldErrors {
  readonly messages: string[] = [];

  invalid(path: string, value: BadValue, detail: string): void {
    this.messages.push(`${path}: Invalid value: ${render(value)}: ${detail}`);
  }

  duplicate(path: string, value: string): void {
    this.messages.push(`${path}: Duplicate value: ${quote(value)}`);
  }

  notSupported(path: string, value: string, supported: readonly string[]): void {
    const values = supported.map(quote).join(', ');
    this.messages.push(`${path}: Unsupported value: ${quote(value)}: supported values: ${values}`);
  }

  required(path: string, detail: string): void {
    this.messages.push(`${path}: Required value: ${detail}`);
  }

  forbidden(path: string, detail: string): void {
    this.messages.push(`${path}: Forbidden: ${detail}`);
  }
}

function render(value: BadValue): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'bigint') return quote(formatDuration(value));
  return typeof value === 'number' ? String(value) : goJson(value);
}
