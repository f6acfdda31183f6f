import { type Fields, isFields, ObjectError } from '../../kube/fields.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Intern } from '../../lib/intern.ts';
import type { ResourceName } from '../../model/objects.ts';
import { type ManifestDocument, ManifestError, type Path, parsePath, parseYaml } from './documents.ts';
import { addObject, type Entries, type Entry, noEntries } from './entries.ts';

/** The content of one file. */
export interface ManifestContent {
  readonly entries: Entries;
  /** Objects that the proxy cannot use: other kinds, each once, and Services without an address. */
  readonly unused: readonly string[];
  /** Objects and documents that are invalid. They are left out; the rest of the file is in use. */
  readonly faults: readonly ManifestError[];
}

export interface ContentOptions {
  readonly intern: Intern;
  readonly nodeName: string;
  readonly clock: Clock;
}

/**
 * Reads a manifest of any number of documents and Lists. An invalid object keeps the form that it has in `before`, the
 * last content of the file. If its kind or name is what is wrong, every object of `before` stays. Rejects with
 * `ManifestError` when the text is not YAML.
 */
export async function readContent(
  text: string,
  isJson: boolean,
  options: ContentOptions,
  before?: ManifestContent,
): Promise<ManifestContent> {
  const quick = isJson ? readJson(text, options) : undefined;
  if (quick?.faults.length === 0) return quick;
  const content = contentOf(await parseYaml(text, options.clock), options);
  return before ? keepLastValid(content, before) : content;
}

/**
 * JSON.parse is a hundred times faster than the YAML parser, but gives no positions. The YAML parser, which reads JSON
 * too, reads a file with faults again. Returns undefined when the text is not JSON.
 */
function readJson(text: string, options: ContentOptions): ManifestContent | undefined {
  try {
    return contentOf([{ raw: JSON.parse(text), number: 1, locate: () => undefined }], options);
  } catch {
    return undefined;
  }
}

function contentOf(documents: readonly ManifestDocument[], options: ContentOptions): ManifestContent {
  const entries = noEntries();
  const unused = new Set<string>();
  const faults: ManifestError[] = [];
  for (const document of documents) {
    unlessFaulty(faults, () => {
      for (const place of placesOf(document)) {
        unlessFaulty(faults, () => {
          const what = addItem(itemOf(place), entries, options);
          if (what !== undefined) unused.add(what);
        });
      }
    });
  }
  return { entries, unused: [...unused], faults };
}

/** Runs `read` and adds the `ManifestError` that it throws to `faults`. */
function unlessFaulty(faults: ManifestError[], read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    faults.push(error);
  }
}

const listKind = /^(Service|EndpointSlice|Endpoints|Node|ServiceCIDR)?List$/;

/** Where an object is in its document. */
interface Place {
  readonly raw: unknown;
  /** From the root of the document. */
  readonly path: Path;
  readonly document: ManifestDocument;
  /** Items of a typed list (ServiceList) do not repeat apiVersion and kind. */
  readonly inherited: Partial<Record<string, string>>;
}

interface Item extends Place {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Fields;
}

/** Returns the object of a document, or the items of its List. */
function placesOf(document: ManifestDocument): Place[] {
  const top = { raw: document.raw, path: [], document, inherited: {} };
  const { raw, kind, apiVersion } = itemOf(top);
  const of = listKind.exec(kind);
  if (!of) return [top];
  const items = raw.items ?? [];
  if (!Array.isArray(items)) throw faultAt(top, 'items: want an array', ['items']);
  const inherited = of[1] === undefined ? {} : { apiVersion, kind: of[1] };
  return items.map((item: unknown, i) => ({ raw: item, path: ['items', i], document, inherited }));
}

function itemOf(place: Place): Item {
  const { raw, inherited } = place;
  if (!isFields(raw)) throw faultAt(place, 'want a Kubernetes object', []);
  const text = (field: 'apiVersion' | 'kind'): string => {
    const value = raw[field] ?? inherited[field];
    if (typeof value === 'string' && value !== '') return value;
    const example = field === 'kind' ? 'Service' : 'v1';
    throw faultAt(place, `${field}: want a string such as "${example}"`, [field]);
  };
  return { ...place, raw, apiVersion: text('apiVersion'), kind: text('kind') };
}

/** Adds an item; returns its description when kube-proxy does not use it. */
function addItem(item: Item, entries: Entries, options: ContentOptions): string | undefined {
  const { apiVersion, kind, raw, path, document } = item;
  try {
    return addObject(apiVersion, kind, raw, entries, { ...options, position: document.locate(path) });
  } catch (error) {
    if (!(error instanceof ObjectError)) throw error;
    throw faultAt(item, error.message, parsePath(error.field), subjectsOf(item));
  }
}

/** `field` is the path from the object to the wrong value. */
function faultAt(
  { path, document }: Place,
  message: string,
  field: Path,
  subjects: readonly string[] = [],
): ManifestError {
  const item = path.length === 0 ? '' : `, items[${path[1]}]`;
  const position = document.locate([...path, ...field]);
  return new ManifestError(`document ${document.number}${item}: ${message}`, position, subjects);
}

/** The subjects that entries of this object may have; none when its name is what is wrong. */
function subjectsOf({ kind, raw }: Item): string[] {
  const { name, namespace = 'default' } = isFields(raw.metadata) ? raw.metadata : {};
  return typeof name === 'string' && name !== '' ? [`${kind} ${name}`, `${kind} ${namespace}/${name}`] : [];
}

/** Adds what stays in use of `before` because of faults, and says so in their messages. */
function keepLastValid(content: ManifestContent, before: ManifestContent): ManifestContent {
  const { faults, entries } = content;
  if (faults.length === 0) return content;
  const unnamed = faults.some(({ subjects }) => subjects.length === 0);
  const named = new Set(faults.flatMap(({ subjects }) => subjects));
  const kept = new Set<string>();
  const keep = <T extends Entry<ResourceName>>(now: readonly T[], last: readonly T[]): T[] => {
    const present = new Set(now.map(({ key }) => key));
    const staying = last.filter(({ key, subject }) => !present.has(key) && (unnamed || named.has(subject)));
    for (const { subject } of staying) kept.add(subject);
    return [...now, ...staying];
  };
  const all: Entries = {
    nodes: keep(entries.nodes, before.entries.nodes),
    serviceCIDRs: keep(entries.serviceCIDRs, before.entries.serviceCIDRs),
    services: keep(entries.services, before.entries.services),
    endpointSlices: keep(entries.endpointSlices, before.entries.endpointSlices),
  };
  return { ...content, entries: all, faults: faults.map((fault) => withWhatStays(fault, kept)) };
}

function withWhatStays(fault: ManifestError, kept: ReadonlySet<string>): ManifestError {
  const { message, position, subjects } = fault;
  if (kept.size === 0) return fault;
  if (subjects.length === 0)
    return new ManifestError(`${message}; no object of this file is removed meanwhile`, position);
  if (!subjects.some((subject) => kept.has(subject))) return fault;
  return new ManifestError(`${message}; its last valid form stays in use`, position, subjects);
}
