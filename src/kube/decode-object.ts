import { annotationPrefix, type OwnAnnotations } from '../model/own-annotations.ts';
import {
  FieldFault,
  type Fields,
  fieldsOf,
  isFields,
  ObjectError,
  objectAt,
  optionalStringAt,
  stringAt,
  within,
} from './fields.ts';

/** The metadata that decoders use. */
export interface Metadata {
  readonly name: string;
  readonly namespace: string;
  readonly resourceVersion: string;
  readonly labels: Fields;
  readonly annotations: Fields;
  readonly deleting: boolean;
}

/** Decodes one object of `kind`. Throws an `ObjectError` that names the object and the bad field. */
export function decodeObject<T>(
  kind: string,
  raw: unknown,
  decode: (object: Fields, meta: Metadata) => T,
): T {
  try {
    const object = fieldsOf(raw);
    const said = object.kind;
    // Items of a list do not repeat their kind.
    if (said !== undefined && said !== '' && said !== kind) throw new FieldFault('kind', said, `"${kind}"`);
    return decode(object, objectAt(object, 'metadata', metadataOf));
  } catch (error) {
    if (!(error instanceof FieldFault)) throw error;
    throw new ObjectError(kind, objectName(raw), error.path, error.value, error.wanted);
  }
}

/** `namespace/name` of a raw object, or empty when it has no usable name. */
export function objectName(raw: unknown): string {
  const metadata = isFields(raw) ? raw.metadata : undefined;
  if (!isFields(metadata)) return '';
  const { namespace, name } = metadata;
  if (typeof name !== 'string' || name === '') return '';
  return typeof namespace === 'string' && namespace !== '' ? `${namespace}/${name}` : name;
}

/** The value of a label or annotation; undefined when absent. */
export function annotationAt(meta: Metadata, map: 'labels' | 'annotations', key: string): string | undefined {
  return within(`metadata.${map}`, () => optionalStringAt(meta[map], key));
}

/** Annotations under our own prefix; undefined when there are none. */
export function ownAnnotations(meta: Metadata): OwnAnnotations | undefined {
  const keys = Object.keys(meta.annotations).filter((key) => key.startsWith(annotationPrefix));
  const found = keys.flatMap((key) => {
    const value = annotationAt(meta, 'annotations', key);
    return value === undefined ? [] : [[key.slice(annotationPrefix.length), value] as const];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

function metadataOf(metadata: Fields): Metadata {
  const name = stringAt(metadata, 'name');
  if (name === '') throw new FieldFault('name', metadata.name, 'a name');
  return {
    name,
    namespace: stringAt(metadata, 'namespace'),
    resourceVersion: stringAt(metadata, 'resourceVersion'),
    labels: objectAt(metadata, 'labels', (labels) => labels),
    annotations: objectAt(metadata, 'annotations', (annotations) => annotations),
    deleting: optionalStringAt(metadata, 'deletionTimestamp') !== undefined,
  };
}
