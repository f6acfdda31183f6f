import { formatDuration } from '../lib/duration.ts';
import { shortestFloat32 } from '../lib/go-float.ts';
import { goJson } from '../lib/go-quote.ts';
import { toExternal } from './convert.ts';
import type { ScalarType, StructType, Type } from './schema.ts';
import type { ConfigDraft } from './types.ts';
import { v1alpha1 } from './v1alpha1.ts';
import { type Plain, type PlainObject, writeYaml } from './write-yaml.ts';

/** The configuration as a v1alpha1 object of plain values, in upstream's field order. */
export function encodeConfig(config: ConfigDraft): PlainObject {
  return encodeStruct(v1alpha1, toExternal(config));
}

/** The YAML that `--write-config-to` writes. */
export function configToYAML(config: ConfigDraft): string {
  return writeYaml(encodeConfig(config));
}

/** The JSON that /configz shows. */
export function configToJSON(config: ConfigDraft): string {
  return goJson(encodeConfig(config));
}

function encodeStruct(type: StructType, value: Readonly<Record<string, unknown>>): PlainObject {
  const encoded: [string, Plain][] = [];
  for (const [name, { type: fieldType, omitEmpty }] of Object.entries(type.fields)) {
    if (!(omitEmpty && isEmpty(value[name]))) encoded.push([name, encodeValue(fieldType, value[name])]);
  }
  return Object.fromEntries(encoded);
}

function encodeValue(type: Type, value: unknown): Plain {
  if (value === null) return null;
  switch (type.kind) {
    case 'struct':
      return encodeStruct(type, value as Record<string, unknown>);
    case 'list':
      return (value as unknown[]).map((item) => encodeValue(type.of, item));
    case 'map': {
      const entries = Object.entries(value as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));
      return Object.fromEntries(entries.map(([name, entry]) => [name, encodeScalar(type.of, entry)]));
    }
    case 'nullable':
      return encodeScalar(type.of, value);
    default:
      return encodeScalar(type, value);
  }
}

function encodeScalar(type: ScalarType, value: unknown): Plain {
  if (typeof value === 'bigint') return formatDuration(value);
  return type.kind === 'float32' ? shortestFloat32(value as number) : (value as Plain);
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || value === false || (typeof value === 'object' && Object.keys(value).length === 0);
}
