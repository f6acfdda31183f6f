import type { Handler } from '../http/router.ts';
import type { Clock } from '../lib/clock.ts';
import { reply } from '../lib/http.ts';
import { encodeDelimited } from '../obs/protobuf-exposition.ts';
import type { Registry } from '../obs/registry.ts';
import { formatText } from '../obs/text-exposition.ts';
import { negotiateEncoding, parseAccept } from './accept.ts';
import { SharedPages } from './shared-pages.ts';

const protobufType = 'application/vnd.google.protobuf';
const protobufMessage = 'io.prometheus.client.MetricFamily';
/** Escapings of names outside the classic alphabet. Our names need none, so each of them is fine. */
const escapings = new Set(['allow-utf-8', 'underscores', 'dots', 'values']);

interface Format {
  readonly kind: 'text' | 'protobuf';
  readonly contentType: string;
}

/** What decides about the bytes of a page. */
interface PageForm {
  readonly kind: Format['kind'];
  readonly encoding: Encoding;
  /** The metrics that it has; all if empty. */
  readonly names: readonly string[];
}

const encodings = ['identity', 'gzip', 'zstd'] as const;
type Encoding = (typeof encodings)[number];

/** Serves a registry in the Prometheus text or delimited protobuf format. `startTime` is in Unix seconds. */
export function metricsHandler(registry: Registry, startTime: number, clock: Clock): Handler {
  const pages = new SharedPages((form: PageForm) => makePage(registry, form), clock);
  return (request, response, { query }) => {
    const { kind, contentType } = chooseFormat(request.header('accept'));
    const encoding = negotiateEncoding(request.header('accept-encoding'), encodings) ?? 'identity';
    const headers = {
      'Content-Type': contentType,
      'Process-Start-Time-Unix': String(Math.trunc(startTime)),
      ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
    };
    const send = (page: Uint8Array) => reply(response, 200, headers, page);
    const page = pages.get({ kind, encoding, names: query.getAll('name[]') }, request.waitsSince);
    return page instanceof Promise ? page.then(send) : send(page);
  };
}

async function makePage(registry: Registry, { kind, encoding, names }: PageForm): Promise<Uint8Array> {
  const families = await registry.gather(names.length > 0 ? new Set(names) : undefined);
  const page = kind === 'text' ? Buffer.from(formatText(families)) : encodeDelimited(families);
  return encoding === 'identity' ? page : compress(page, encoding);
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

async function compress(page: Uint8Array, encoding: 'gzip' | 'zstd'): Promise<Uint8Array> {
  // Loaded on first use: many nodes are never scraped with compression.
  const [{ promisify }, zlib] = await Promise.all([import('node:util'), import('node:zlib')]);
  return encoding === 'gzip' ? promisify(zlib.gzip)(page) : promisify(zlib.zstdCompress)(page);
}
