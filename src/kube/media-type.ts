export const jsonType = 'application/json';
export const protobufType = 'application/vnd.kubernetes.protobuf';

/** A media type without its parameters. */
export function mediaTypeOf(type: string): string {
  return type.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}
