import { type Encoding, jsonEncoding, protobufEncoding } from './encoding.ts';
import { ApiFault } from './status.ts';

/**
 * How the server treats requests for protobuf: it serves them, it knows only JSON, it answers in JSON whatever is asked
 * for, or it refuses them with this status.
 */
export type ProtobufSupport = 'served' | 'unknown' | 'ignored' | 406 | 415;

interface Clause {
  readonly type: string;
  readonly quality: number;
  readonly parameters: ReadonlyMap<string, string>;
}

/** The encoding that the Accept header prefers. Throws `ApiFault` if the server has none of those it names. */
export function negotiate(accept: string, support: ProtobufSupport): Encoding {
  if (accept.trim() === '' || support === 'ignored') return jsonEncoding;
  const chosen = preferred(accept, support === 'unknown' ? [jsonEncoding] : [jsonEncoding, protobufEncoding]);
  if (chosen === undefined) throw notAcceptable;
  if (chosen === protobufEncoding && support === 406) throw notAcceptable;
  if (chosen === protobufEncoding && support === 415) throw unsupportedMediaType;
  return chosen;
}

const types = 'application/json, application/vnd.kubernetes.protobuf';
const notAcceptable = new ApiFault(
  406,
  'NotAcceptable',
  `only the following media types are accepted: ${types}`,
);

/** For a body that is not JSON, the only encoding that this server reads. */
export const unsupportedMediaType = new ApiFault(
  415,
  'UnsupportedMediaType',
  'the body of the request was in an unknown format - accepted media types include: application/json',
);

function preferred(accept: string, available: readonly Encoding[]): Encoding | undefined {
  const clauses = accept.split(',').map((clause) => clauseOf(clause));
  // The order of the header decides between equals.
  clauses.sort((a, b) => b.quality - a.quality || wildcards(a) - wildcards(b));
  for (const clause of clauses.filter(isPlain)) {
    const found = available.find((encoding) => matches(clause, encoding));
    if (found !== undefined) return found;
  }
  return undefined;
}

function clauseOf(text: string): Clause {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = new Map(rest.map((part) => [before(part, '='), part.slice(part.indexOf('=') + 1)]));
  return { type, parameters, quality: Number(parameters.get('q') ?? 1) };
}

function before(text: string, mark: string): string {
  return text.split(mark)[0] ?? '';
}

function wildcards({ type }: Clause): number {
  return type.split('*').length - 1;
}

/** Whether the clause asks for objects as they are. */
function isPlain({ parameters }: Clause): boolean {
  return !parameters.has('as') && (parameters.get('stream') ?? 'watch') === 'watch';
}

function matches({ type }: Clause, { mediaType }: Encoding): boolean {
  return type === '*/*' || type === mediaType || type === `${before(mediaType, '/')}/*`;
}
