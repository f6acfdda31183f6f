import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, crc32, gzipSync } from 'node:zlib';
import { type Encoding, jsonEncoding, type TypedObject } from './encoding.ts';
import { type Fault, type Outlet, outletFor } from './faults.ts';
import { negotiate, type ProtobufSupport } from './negotiation.ts';
import { type ApiFault, statusOf } from './status.ts';

/** The real server compresses lists of more bytes. */
export const gzipAboveBytes = 128 * 1024;

/** The answer to one request, in the encoding that the request asks for. */
export class Reply {
  readonly #response: ServerResponse;
  readonly #fault: Fault | undefined;
  readonly #gzipAbove: number;
  /** JSON until `negotiate` succeeds. */
  #encoding = jsonEncoding;
  #acceptsGzip = false;

  constructor(response: ServerResponse, fault: Fault | undefined, gzipAbove: number) {
    this.#response = response;
    this.#fault = fault;
    this.#gzipAbove = gzipAbove;
  }

  get encoding(): Encoding {
    return this.#encoding;
  }

  /** Chooses the encoding. Throws `ApiFault` if the client accepts none that the server has. */
  negotiate({ headers }: IncomingMessage, support: ProtobufSupport): void {
    this.#encoding = negotiate(headers.accept ?? '', support);
    this.#acceptsGzip = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
  }

  object(code: number, object: TypedObject): void {
    this.bytes(code, this.#encoding.object(object));
  }

  status(fault: ApiFault, retryAfter?: number): void {
    if (retryAfter !== undefined) this.#response.setHeader('retry-after', String(retryAfter));
    this.object(fault.code, statusOf(fault));
  }

  bytes(code: number, bytes: Buffer): void {
    this.#response.writeHead(code, {
      'content-type': this.#encoding.mediaType,
      'content-length': bytes.length,
    });
    this.#response.end(bytes);
  }

  list(bytes: Buffer): void {
    const packs = this.#acceptsGzip && bytes.length > this.#gzipAbove && this.#fault === undefined;
    this.#response.writeHead(200, {
      'content-type': this.#encoding.mediaType,
      ...(packs && { 'content-encoding': 'gzip' }),
    });
    const outlet = outletFor(this.#response, this.#fault);
    outlet.write(packs ? gzipSync(bytes, { level: 1 }) : bytes);
    outlet.end();
  }

  /** Begins the answer to a watch. One that begins with a list is compressed if the client asks for that. */
  stream(beginsWithList: boolean): Outlet {
    const packs = this.#acceptsGzip && beginsWithList && this.#fault === undefined;
    this.#response.writeHead(200, {
      'content-type': this.#encoding.watchType,
      ...(packs && { 'content-encoding': 'gzip' }),
    });
    this.#response.flushHeaders();
    const outlet = outletFor(this.#response, this.#fault);
    return packs ? packing(outlet) : outlet;
  }

  cut(): void {
    this.#response.destroy();
  }
}

/** Compresses every write for itself, as the real server does, so that no event is held back. */
function packing(outlet: Outlet): Outlet {
  return {
    write: (bytes) => outlet.write(packed(bytes)),
    end: () => outlet.end(),
    destroy: () => outlet.destroy(),
    onClose: (run) => outlet.onClose(run),
  };
}

/**
 * A gzip member whose data is flushed before its end. Without that, a client in Go gets the data only when the next
 * member begins.
 */
function packed(bytes: Buffer): Buffer {
  const flushed = gzipSync(bytes, { level: 1, finishFlush: constants.Z_SYNC_FLUSH });
  const end = Buffer.alloc(10);
  end.writeUInt8(3, 0);
  end.writeUInt32LE(crc32(bytes), 2);
  end.writeUInt32LE(bytes.length, 6);
  return Buffer.concat([flushed, end]);
}
