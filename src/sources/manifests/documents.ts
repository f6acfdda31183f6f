import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import { TimeSlice } from '../../lib/time-slice.ts';

/** A position in a file; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** An error in a manifest, with its position. */
export class ManifestError extends Error {
  readonly code = 'KPT_MANIFEST_INVALID';
  override readonly name = 'ManifestError';
  readonly position: Position | undefined;
  /** Kind and name of the object that is wrong, in the forms that they may have; none when it has no name. */
  readonly subjects: readonly string[];

  constructor(message: string, position?: Position, subjects: readonly string[] = []) {
    super(message);
    this.position = position;
    this.subjects = subjects;
  }
}

/** An error in a manifest. */
export interface ManifestProblem {
  readonly file: string;
  readonly position?: Position;
  readonly message: string;
}

/** `file:line:column: message` */
export function printProblem({ file, position, message }: ManifestProblem): string {
  const place = position ? `${file}:${position.line}:${position.column}` : file;
  return `${place}: ${message}`;
}

export type Path = readonly (string | number)[];

export interface ManifestDocument {
  readonly raw: unknown;
  /** Counts the documents of the file from 1. */
  readonly number: number;
  /** The position of the value at `path`, or of its nearest existing parent; undefined when positions are unknown. */
  locate(path: Path): Position | undefined;
}

/** Parses the non-empty documents of a YAML or JSON text. Rejects with `ManifestError` at the first error. */
export async function parseYaml(text: string, clock: Clock): Promise<ManifestDocument[]> {
  const { Composer, isNode, LineCounter, Parser } = await import('yaml');
  const lines = new LineCounter();
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const documents: ManifestDocument[] = [];
  // kubectl understands merge keys (`<<: *anchor`), so manifests use them.
  const composer = new Composer({ merge: true, prettyErrors: false });
  const timeSlice = new TimeSlice(clock);
  let number = 0;
  for (const document of composer.compose(new Parser(lines.addNewLine).parse(text))) {
    if (timeSlice.isSpent) await timeSlice.yield();
    number++;
    const fault = document.errors[0];
    if (fault) throw new ManifestError(fault.message, positionAt(fault.pos[0]));
    const locate = (path: Path): Position => {
      for (let length = path.length; length > 0; length--) {
        const node = document.getIn(path.slice(0, length), true);
        if (isNode(node) && node.range) return positionAt(node.range[0]);
      }
      return positionAt(document.contents?.range?.[0] ?? document.range[0]);
    };
    const raw = toPlain(document, locate([]));
    if (raw !== null && raw !== undefined) documents.push({ raw, number, locate });
  }
  return documents;
}

/** Expands aliases. Throws when the library refuses a document that grows too large by them. */
function toPlain(document: { toJS(): unknown }, position: Position): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new ManifestError(messageOf(error), position);
  }
}

/** Splits a field path like `spec.ports[0].port` or `metadata.labels["a/b"]` into keys and indexes. */
export function parsePath(field: string): Path {
  const parts = field.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g);
  return [...parts].map(([, index, quoted, key]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? (key ?? '') : String(JSON.parse(quoted));
  });
}
