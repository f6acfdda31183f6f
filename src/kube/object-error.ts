import { printValue } from './fields.ts';

/** An object that does not have the shape its kind promises; names the object, the field and the value. */
export class ObjectError extends Error {
  readonly code = 'KPT_OBJECT_INVALID';
  override readonly name = 'ObjectError';
  readonly kind: string;
  /** `namespace/name` or `name`, as far as it is known; empty when the object does not even say. */
  readonly object: string;
  readonly field: string;
  readonly value: unknown;

  constructor(kind: string, object: string, field: string, value: unknown, wanted: string) {
    const subject = object === '' ? kind : `${kind} ${object}`;
    const place = field === '' ? '' : `${field}: `;
    super(`${subject}: ${place}want ${wanted}, got ${printValue(value)}`);
    this.kind = kind;
    this.object = object;
    this.field = field;
    this.value = value;
  }
}
