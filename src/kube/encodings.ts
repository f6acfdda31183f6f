import type { Encoding } from './encoding.ts';
import { jsonEncoding } from './json-encoding.ts';
import { mediaTypeOf, protobufType } from './media-type.ts';
import { protobufEncoding } from './protobuf/encoding.ts';

/**
 * The encoding of an answer by its Content-Type, whatever was asked for: a proxy or an aggregated server may send JSON
 * all the same. An unknown type is read as JSON, whose reader then says what is wrong.
 */
export function encodingOf(contentType: string): Encoding {
  return mediaTypeOf(contentType) === protobufType ? protobufEncoding : jsonEncoding;
}
