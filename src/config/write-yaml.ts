import { formatFloat } from '../lib/go-float.ts';
import { writeScalar } from './write-yaml-scalar.ts';

/** Values that both JSON and YAML can hold. */
export type Plain = null | boolean | number | string | Plain[] | PlainObject;

export interface PlainObject {
  readonly [key: string]: Plain;
}

/**
 * Writes block-style YAML as Kubernetes does: sorted keys, two spaces per level, list items not indented under their
 * key. No library, because it would take 9 MB of memory on every node.
 */
export function writeYaml(object: PlainObject): string {
  return `${mapLines(object, 0).join('\n')}\n`;
}

function mapLines(object: PlainObject, indent: number): string[] {
  const names = Object.keys(object).sort((a, b) => (a < b ? -1 : 1));
  return names.flatMap((name) => {
    const key = `${' '.repeat(indent)}${writeScalar(name, { indent, column: indent, isKey: true })}:`;
    return entryLines(key, object[name] ?? null, indent);
  });
}

function entryLines(key: string, value: Plain, indent: number): string[] {
  if (Array.isArray(value) && value.length > 0) {
    return [key, ...value.flatMap((item) => itemLines(item, indent))];
  }
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) {
    return [key, ...mapLines(value as PlainObject, indent + 2)];
  }
  return [`${key} ${leaf(value, indent, key.length + 1)}`];
}

function itemLines(value: Plain, indent: number): string[] {
  const dash = `${' '.repeat(indent)}- `;
  if (typeof value !== 'object' || value === null) return [`${dash}${leaf(value, indent, indent + 2)}`];
  if (Array.isArray(value)) return [`${dash}[]`];
  const [first = '', ...rest] = mapLines(value, indent + 2);
  return [`${dash}${first.slice(indent + 2)}`, ...rest];
}

/** `indent` is that of the enclosing map or list, `column` the start of the value. */
function leaf(value: Plain, indent: number, column: number): string {
  if (typeof value === 'string') return writeScalar(value, { indent: indent + 2, column, isKey: false });
  if (typeof value === 'number') return writeNumber(value);
  return Array.isArray(value) ? '[]' : value !== null && typeof value === 'object' ? '{}' : String(value);
}

/** Whole numbers of up to 64 bits in full, others as Go's %g. */
function writeNumber(value: number): string {
  if (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 64) return BigInt(value).toString();
  return formatFloat(value);
}
