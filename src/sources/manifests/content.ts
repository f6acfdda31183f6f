import { type Fields, isFields, ObjectError } from '../../kube/fields.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Intern } from '../../lib/intern.ts';
import { type ManifestDocument, ManifestError, type Path, parsePath, parseYaml } from './documents.ts';
import { addObject, type Entries, noEntries } from './entries.ts';

/** The content of one file. */
export interface ManifestContent {
  readonly entries: Entries;
  /** Objects that the proxy cannot use: other kinds, each once, and Services without an address. */
  readonly unused: readonly string[];
}

export interface ContentOptions {
  readonly intern: Intern;
  readonly nodeName: string;
  readonly clock: Clock;
}

/** Reads a manifest of any number of documents and Lists. Rejects with `ManifestError` when any part is wrong. */
export async function readContent(
  text: string,
  isJson: boolean,
  options: ContentOptions,
): Promise<ManifestContent> {
  return (
    (isJson ? readJson(text, options) : undefined) ?? contentOf(await parseYaml(text, options.clock), options)
  );
}

/**
 * JSON.parse is a hundred times faster than the YAML parser, but gives no positions. Returns undefined on any error;
 * the YAML parser, which reads JSON too, then reports it.
 */
function readJson(text: string, options: ContentOptions): ManifestContent | undefined {
  try {
    return contentOf([{ raw: JSON.parse(text), locate: () => undefined }], options);
  } catch {
    return undefined;
  }
}

function contentOf(documents: readonly ManifestDocument[], options: ContentOptions): ManifestContent {
  const entries = noEntries();
  const unused = new Set<string>();
  for (const document of documents) {
    for (const item of itemsOf(document)) {
      const what = addItem(item, entries, options);
      if (what !== undefined) unused.add(what);
    }
  }
  return { entries, unused: [...unused] };
}

const listKind = /^(Service|EndpointSlice|Endpoints|Node|ServiceCIDR)?List$/;

interface Item {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Fields;
  /** From the root of the document. */
  readonly path: Path;
  readonly document: ManifestDocument;
}

/** Returns the object of a document, or the items of its List. */
function itemsOf(document: ManifestDocument): Item[] {
  const { raw } = document;
  if (!isFields(raw)) throw new ManifestError('want a Kubernetes object', document.locate([]));
  const top = itemOf(raw, [], document, {});
  const of = listKind.exec(top.kind);
  if (!of) return [top];
  const items = raw.items ?? [];
  if (!Array.isArray(items)) throw new ManifestError('items: want an array', document.locate(['items']));
  // Items of a typed list (ServiceList) do not repeat apiVersion and kind.
  const inherited = of[1] === undefined ? {} : { apiVersion: top.apiVersion, kind: of[1] };
  return items.map((item: unknown, i) => {
    const path = ['items', i];
    if (!isFields(item))
      throw new ManifestError(`items[${i}]: want a Kubernetes object`, document.locate(path));
    return itemOf(item, path, document, inherited);
  });
}

function itemOf(
  raw: Fields,
  path: Path,
  document: ManifestDocument,
  inherited: Partial<Record<string, string>>,
): Item {
  const text = (field: 'apiVersion' | 'kind'): string => {
    const value = raw[field] ?? inherited[field];
    if (typeof value === 'string' && value !== '') return value;
    const example = field === 'kind' ? 'Service' : 'v1';
    throw new ManifestError(
      `${field}: want a string such as "${example}"`,
      document.locate([...path, field]),
    );
  };
  return { apiVersion: text('apiVersion'), kind: text('kind'), raw, path, document };
}

/** Adds an item; returns its description when kube-proxy does not use it. */
function addItem(item: Item, entries: Entries, options: ContentOptions): string | undefined {
  const { apiVersion, kind, raw, path, document } = item;
  try {
    return addObject(apiVersion, kind, raw, entries, { ...options, position: document.locate(path) });
  } catch (error) {
    if (!(error instanceof ObjectError)) throw error;
    throw new ManifestError(error.message, document.locate([...path, ...parsePath(error.field)]));
  }
}
