import fc from 'fast-check';
import type { Json } from '../../src/config/json-tree.ts';
import type { ScalarType, Type } from '../../src/config/schema.ts';
import { API_VERSION, KIND, v1alpha1 } from '../../src/config/v1alpha1.ts';

/** A JSON tree as JSON.parse would give it. */
export function plainJson(json: Json): unknown {
  if (json === null || typeof json !== 'object') return json;
  if (json.kind === 'number') return Number(json.text);
  if (json.kind === 'array') return json.items.map(plainJson);
  return Object.fromEntries(json.entries.map(([key, value]) => [key, plainJson(value)]));
}

/** Configuration files as plain objects: any field may be left out, values have the right type and are otherwise odd. */
export function configFiles(): fc.Arbitrary<Record<string, unknown>> {
  return arbitraryOf(v1alpha1).map((fields) => ({
    ...(fields as object),
    kind: KIND,
    apiVersion: API_VERSION,
    mode: (fields as { mode?: string }).mode ?? '',
  }));
}

function arbitraryOf(type: Type): fc.Arbitrary<unknown> {
  switch (type.kind) {
    case 'struct': {
      const fields = Object.entries(type.fields).map(([name, field]) => [name, arbitraryOf(field.type)]);
      return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
    }
    case 'list':
      return fc.option(fc.array(arbitraryOf(type.of), { maxLength: 4 }));
    case 'map':
      return fc.option(fc.dictionary(fc.string({ maxLength: 20 }), scalarOf(type.of), { maxKeys: 4 }));
    case 'nullable':
      return fc.option(scalarOf(type.of));
    default:
      return scalarOf(type);
  }
}

function scalarOf(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type.kind) {
    case 'bool':
      return fc.boolean();
    case 'int32':
      return fc.integer();
    case 'uint32':
      return fc.nat(2 ** 32 - 1);
    case 'float32':
      return fc.float({ noNaN: true, noDefaultInfinity: true });
    case 'duration':
      return fc.oneof(
        fc.constant('0s'),
        fc
          .tuple(fc.integer({ min: -999_999, max: 999_999 }), fc.constantFrom('ns', 'ms', 's', 'm'))
          .map((p) => p.join('')),
      );
    case 'nanoseconds':
      return fc.oneof(fc.integer(), fc.constantFrom('5s', null));
    case 'quantity':
      return fc.oneof(fc.nat(), fc.constantFrom('1Ki', '1500m', '2e3', null));
    default:
      return type.go.endsWith('ProxyMode')
        ? fc.constantFrom('', 'iptables', 'ipvs', 'nftables', 'userspace', 'odd')
        : fc.oneof(
            fc.string({ unit: 'binary' }),
            fc.constantFrom('10.0.0.0/8', 'a,b', 'yes', 'a b: c\nd', ''),
          );
  }
}
