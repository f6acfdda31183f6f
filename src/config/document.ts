import { defaultConfig } from './defaults.ts';
import { encodeConfig } from './encode.ts';
import type { StructType, Type } from './schema.ts';
import { v1alpha1 } from './v1alpha1.ts';
import type { Plain } from './write-yaml.ts';

/** One line of the configuration reference. */
export interface FieldDoc {
  readonly path: string;
  readonly type: string;
  /** What an empty file means, as it would be written in YAML; undefined for list items and omitted fields. */
  readonly default: string | undefined;
  readonly about: string;
}

/** Every field of the configuration file, in the order of the schema. */
export function configFields(): FieldDoc[] {
  return fieldsOf(v1alpha1, '', encodeConfig(defaultConfig()));
}

function fieldsOf(struct: StructType, prefix: string, defaults: Plain | undefined): FieldDoc[] {
  return Object.entries(struct.fields).flatMap(([name, { type, about }]) => {
    const path = `${prefix}${name}`;
    const value = child(defaults, name);
    const inner = type.kind === 'list' && type.of.kind === 'struct' ? type.of : type;
    if (inner.kind !== 'struct') return [{ path, type: typeName(type), default: yaml(value), about }];
    return fieldsOf(inner, type.kind === 'list' ? `${path}[].` : `${path}.`, value);
  });
}

function child(value: Plain | undefined, name: string): Plain | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value[name] : undefined;
}

function typeName(type: Type): string {
  switch (type.kind) {
    case 'nullable':
      return `${type.of.kind}, nullable`;
    case 'list':
      return `list of ${typeName(type.of)}`;
    case 'map':
      return `map of ${type.of.kind}`;
    case 'nanoseconds':
      return 'duration or nanoseconds';
    default:
      return type.kind;
  }
}

function yaml(value: Plain | undefined): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}
