import type { Handler } from '../http/router.ts';
import { type Replier, reply } from '../lib/http.ts';
import { encodeDelimited } from '../obs/protobuf-exposition.ts';
import type { Registry } from '../obs/registry.ts';
import { formatText } from '../obs/text-exposition.ts';
import { negotiateEncoding, parseAccept } from './accept.ts';

const protobufType = 'application/vnd.google.protobuf';
const protobufMessage = 'io.prometheus.client.MetricFamily';
/** Escapings of names outside the classic alphabet. Our names need none, so each of them is fine. */
const escapings = new Set(['allow-utf-8', 'underscores', 'dots', 'values']);

interface Format {
  readonly kind: 'text' | 'protobuf';
  readonly contentType: string;
}

/** Serves a registry in the Prometheus text or delimited protobuf format. `startTime` is in Unix seconds. */
export function metricsHandler(registry: Registry, startTime: number): Handler {
  return async (request, response, { query }) => {
    const names = query.getAll('name[]');
    const families = await registry.gather(names.length > 0 ? new Set(names) : undefined);
    const format = chooseFormat(request.header('accept'));
    const body = format.kind === 'text' ? Buffer.from(formatText(families)) : encodeDelimited(families);
    const headers = {
      'Content-Type': format.contentType,
      'Process-Start-Time-Unix': String(Math.trunc(startTime)),
    };
    await replyEncoded(response, request.header('accept-encoding'), headers, body);
  };
}

/** Returns the first supported format of the Accept header, or text. */
function chooseFormat(accept: string | undefined): Format {
  for (const { type, params } of parseAccept(accept)) {
    const escaping = params.get('escaping') ?? '';
    const suffix = `escaping=${escapings.has(escaping) ? escaping : 'underscores'}`;
    if (isDelimitedProtobuf(type, params)) {
      const contentType = `${protobufType}; proto=${protobufMessage}; encoding=delimited; ${suffix}`;
      return { kind: 'protobuf', contentType };
    }
    if (type === 'text/plain' && ['', '0.0.4'].includes(params.get('version') ?? '')) return text(suffix);
  }
  return text('escaping=underscores');
}

function isDelimitedProtobuf(type: string, params: ReadonlyMap<string, string>): boolean {
  return (
    type === protobufType && params.get('proto') === protobufMessage && params.get('encoding') === 'delimited'
  );
}

function text(suffix: string): Format {
  return { kind: 'text', contentType: `text/plain; version=0.0.4; charset=utf-8; ${suffix}` };
}

async function replyEncoded(
  response: Replier,
  accepted: string | undefined,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
): Promise<void> {
  const encoding = negotiateEncoding(accepted, ['identity', 'gzip', 'zstd']);
  if (encoding !== 'gzip' && encoding !== 'zstd') return reply(response, 200, headers, body);
  // Loaded on first use: many nodes are never scraped with compression.
  const [{ promisify }, zlib] = await Promise.all([import('node:util'), import('node:zlib')]);
  const compress = encoding === 'gzip' ? promisify(zlib.gzip) : promisify(zlib.zstdCompress);
  const compressed = await compress(body);
  reply(response, 200, { ...headers, 'Content-Encoding': encoding }, compressed);
}
