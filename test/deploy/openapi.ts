import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** Kinds of the Kubernetes API, reduced to names and types; the file says how to read them. */
interface Kinds {
  /** `apps/v1 DaemonSet` → schema */
  readonly kinds: Readonly<Record<string, string>>;
  readonly schemas: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const file = resolve(import.meta.dirname, '../vectors/openapi/kinds.json');
const { kinds, schemas } = JSON.parse(readFileSync(file, 'utf8')) as Kinds;

/** Why the API would reject an object: unknown fields, wrong types, missing fields. Empty when it would not. */
export function schemaProblems(object: unknown): string[] {
  if (!isMap(object)) return ['not an object'];
  const kind = `${String(object.apiVersion)} ${String(object.kind)}`;
  const schema = kinds[kind];
  if (schema === undefined) return [`no kind ${kind} is known`];
  return [...problemsOf(object, `#${schema}`, '')];
}

function* problemsOf(value: unknown, type: string, path: string): Generator<string> {
  if (type === 'any') return;
  if (type.startsWith('[]')) {
    if (!Array.isArray(value)) yield `${path}: not a list`;
    else for (const [i, item] of value.entries()) yield* problemsOf(item, type.slice(2), `${path}[${i}]`);
  } else if (type.startsWith('{}')) {
    if (!isMap(value)) yield `${path}: not a map`;
    else {
      for (const [key, item] of Object.entries(value))
        yield* problemsOf(item, type.slice(2), `${path}.${key}`);
    }
  } else if (type.startsWith('#')) {
    if (!isMap(value)) yield `${path}: not an object`;
    else yield* fieldProblems(value, schemas[type.slice(1)] ?? {}, path);
  } else if (!type.split('|').includes(scalarType(value))) {
    yield `${path}: ${JSON.stringify(value)} is not of type ${type}`;
  }
}

function* fieldProblems(
  object: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, string>>,
  path: string,
): Generator<string> {
  for (const field of Object.keys(fields)) {
    if (field.endsWith('!') && !(field.slice(0, -1) in object))
      yield `${path}.${field.slice(0, -1)}: missing`;
  }
  for (const [name, value] of Object.entries(object)) {
    const type = fields[name] ?? fields[`${name}!`];
    if (type === undefined) yield `${path}.${name}: unknown`;
    else yield* problemsOf(value, type, `${path}.${name}`);
  }
}

function scalarType(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
