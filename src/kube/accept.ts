import { jsonType, mediaTypeOf, protobufType } from './media-type.ts';

export interface ContentTypes {
  /** `clientConnection.acceptContentTypes`. */
  readonly accept: string;
  /** `clientConnection.contentType`. */
  readonly contentType: string;
}

const readableTypes: readonly string[] = [jsonType, protobufType];
const wildcards: readonly string[] = ['application/*', '*/*'];

/**
 * The Accept header for the configured content types. Types that this client cannot read are left out and returned as
 * `unreadable`, for the log.
 */
export function acceptHeader(types: ContentTypes): {
  readonly header: string;
  readonly unreadable: readonly string[];
} {
  const wanted = types.accept.trim() === '' ? `${types.contentType}, */*` : types.accept;
  const entries = wanted.split(',').map((entry) => entry.trim());
  const isReadable = (entry: string) => [...readableTypes, ...wildcards].includes(mediaTypeOf(entry));
  const readable = entries.filter(isReadable);
  const unreadable = entries.filter((entry) => entry !== '' && !isReadable(entry));
  const isNamed = readable.some((entry) => readableTypes.includes(mediaTypeOf(entry)));
  // With a wildcard alone, a later server might prefer another encoding.
  const header = (isNamed ? readable : [jsonType, ...readable]).join(', ');
  return { header, unreadable };
}
