import type { Alias, ParsedNode, Scalar, YAMLMap } from 'yaml';
import { quote } from '../lib/go-quote.ts';
import { ConfigError } from './errors.ts';
import type { Json, JsonArray, JsonObject } from './json-tree.ts';
import { type LineOf, lineIndex, mistakeAt, NAME, NODE, yamlSyntaxError } from './yaml-errors.ts';
import { resolvePlain } from './yaml-scalar.ts';

type Yaml = typeof import('yaml');

/** The first document as JSON, and the repeated keys of its maps (`line 4: key "mode" already set in map`). */
export interface YamlDocument {
  readonly value: Json;
  readonly duplicates: string[];
}

/** Nothing in a configuration nests deeper than five levels. */
const MAX_DEPTH = 100;
/** The number of values, with aliases expanded, from which upstream's reader refuses a document. */
const MAX_VALUES = 400_000;

/** The characters of YAML; a byte order mark may only come first. */
const readable =
  /^\ufeff?[\t\n\r\x20-\x7e\u0085\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]*$/u;

/**
 * Reads the first document of a YAML 1.1 stream. Rejects with a ConfigError that begins with `yaml: `. The parser is
 * loaded on first use because it takes 9 MB of memory.
 */
export async function readYaml(source: string): Promise<YamlDocument> {
  if (!readable.test(source)) throw new ConfigError('yaml: control characters are not allowed');
  // YAML 1.1 has line breaks that the parser does not know.
  const text = source.replace(/\r\n?|\u0085/g, '\n');
  const yaml = await import('yaml');
  const document = firstDocument(yaml, text);
  if (!document) return { value: null, duplicates: [] };
  const { explicit, version } = document.directives.yaml;
  if (explicit && version !== '1.1') throw new ConfigError('yaml: found incompatible YAML document');
  const lineOf = lineIndex(text);
  const error = yamlSyntaxError(document.errors, text, lineOf);
  if (error) throw error;
  const reader = new YamlReader(yaml, lineOf);
  return { value: reader.read(document.contents), duplicates: reader.duplicates };
}

/** Leaves tags unresolved: resolvePlain decides the type of a scalar. */
function firstDocument(yaml: Yaml, text: string) {
  const composer = new yaml.Composer({
    version: '1.1',
    schema: 'failsafe',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  for (const document of composer.compose(new yaml.Parser().parse(text), true, text.length)) return document;
  return undefined;
}

/** Converts nodes to JSON. An alias shares the value of its anchor, so that a bomb of aliases takes no memory. */
class YamlReader {
  readonly duplicates: string[] = [];
  readonly #yaml: Yaml;
  readonly #lineOf: LineOf;
  readonly #anchors = new Map<string, { value?: Json }>();
  /** The number of values in a container with aliases expanded. */
  readonly #sizes = new WeakMap<JsonArray | JsonObject, number>();
  #merged = 0;

  constructor(yaml: Yaml, lineOf: LineOf) {
    this.#yaml = yaml;
    this.#lineOf = lineOf;
  }

  read(node: ParsedNode | null, depth = 0): Json {
    if (node === null) return null;
    if (depth > MAX_DEPTH) throw new ConfigError(`yaml: exceeded max depth of ${MAX_DEPTH}`);
    if (this.#yaml.isAlias(node)) return this.#alias(node);
    if (!node.anchor) return this.#content(node, depth);
    const anchor: { value?: Json } = {};
    this.#anchors.set(node.anchor, anchor);
    anchor.value = this.#content(node, depth);
    return anchor.value;
  }

  #content(node: Exclude<ParsedNode, Alias.Parsed>, depth: number): Json {
    if (this.#yaml.isScalar(node)) return this.#scalar(node);
    if (this.#yaml.isMap<ParsedNode, ParsedNode | null>(node)) return this.#map(node, depth);
    const items = node.items.map((item) => this.#item(item, node.flow === true, depth));
    return this.#sized({ kind: 'array', items }, items);
  }

  /** Reads a value in a list or map. Upstream's reader does not accept a plain flow value that begins with a colon. */
  #item(node: ParsedNode | null, inFlow: boolean, depth: number): Json {
    if (inFlow && this.#yaml.isScalar(node) && node.type === 'PLAIN' && String(node.value).startsWith(':')) {
      throw mistakeAt(this.#lineOf(node.range?.[0] ?? 0), NODE);
    }
    return this.read(node, depth + 1);
  }

  #sized<T extends JsonArray | JsonObject>(container: T, values: readonly Json[]): T {
    let size = 1;
    for (const value of values) {
      size +=
        typeof value === 'object' && value !== null && value.kind !== 'number' ? this.#sizeOf(value) : 1;
    }
    if (size > MAX_VALUES) throw excessiveAliasing();
    this.#sizes.set(container, size);
    return container;
  }

  #sizeOf(container: JsonArray | JsonObject): number {
    return this.#sizes.get(container) ?? 1;
  }

  #alias(node: Alias): Json {
    if (!/^[\w-]+$/.test(node.source)) throw mistakeAt(this.#lineOf(node.range?.[0] ?? 0), NAME);
    const target = this.#anchors.get(node.source);
    if (!target) throw new ConfigError(`yaml: unknown anchor '${node.source}' referenced`);
    if (target.value === undefined) {
      throw new ConfigError(`yaml: anchor '${node.source}' value contains itself`);
    }
    return target.value;
  }

  #scalar(node: Scalar): Json {
    const text = String(node.value ?? '').toWellFormed();
    const tag = /^tag:yaml\.org,2002:(null|bool|int|float)$/.exec(node.tag ?? '')?.[1];
    if (tag === undefined && (node.tag !== undefined || node.type !== 'PLAIN')) return text;
    const { type, value } = resolvePlain(text);
    if (tag !== undefined && type !== tag && !(tag === 'float' && type === 'int')) {
      throw new ConfigError(`yaml: cannot decode !!str \`${text}\` as a !!${tag}`);
    }
    if (type === 'float' && typeof value === 'string') {
      throw new ConfigError(`json: unsupported value: ${infinityName(value)}`);
    }
    return value;
  }

  /** Sorts keys as upstream, where the map passes through Go's JSON encoder. */
  #map(map: YAMLMap<ParsedNode, ParsedNode | null>, depth: number): Json {
    const values = new Map<string, Json>();
    const seen = new Set<string>();
    for (const { key, value: node } of map.items) {
      const value = this.#item(node, map.flow === true, depth);
      const entries: [Json, Json][] = isMergeKey(key) ? this.#merge(value) : [[this.#key(key, depth), value]];
      for (const [name, entry] of entries) {
        // The number 1 and the text "1" are different keys in YAML, but the same in JSON.
        const shown = typeof name === 'string' ? quote(name) : textOf(name);
        if (seen.has(shown)) {
          const line = this.#lineOf((node ?? key).range[0]);
          this.duplicates.push(`line ${line}: key ${shown} already set in map`);
        }
        seen.add(shown);
        values.set(textOf(name), entry);
      }
    }
    const entries = [...values].sort(([a], [b]) => (a < b ? -1 : 1));
    return this.#sized({ kind: 'object', entries }, [...values.values()]);
  }

  /** Entries of `<<: *a` or `<<: [*a, *b]`; the first of several maps takes precedence. */
  #merge(source: Json): JsonObject['entries'] {
    const maps = isKind(source, 'array') ? [...source.items].reverse() : [source];
    const merged: JsonObject['entries'] = [];
    for (const map of maps) {
      if (!isKind(map, 'object')) {
        throw new ConfigError('yaml: map merge requires map or sequence of maps as the value');
      }
      // Unlike an alias, a merge copies, so it needs its own limit.
      this.#merged += map.entries.length;
      if (this.#merged > MAX_VALUES) throw excessiveAliasing();
      for (const entry of map.entries) merged.push(entry);
    }
    return merged;
  }

  #key(node: ParsedNode, depth: number): Json {
    const value = this.read(node, depth + 1);
    if (value !== null && (typeof value !== 'object' || value.kind === 'number')) return value;
    throw new ConfigError(`yaml: line ${this.#lineOf(node.range[0])}: a key must be a scalar`);
  }
}

/** A scalar as a key of JSON. */
function textOf(scalar: Json): string {
  return isKind(scalar, 'number') ? scalar.text : String(scalar);
}

function isMergeKey(key: ParsedNode): boolean {
  return 'value' in key && key.value === '<<' && key.type === 'PLAIN';
}

function isKind<K extends 'number' | 'array' | 'object'>(
  json: Json,
  kind: K,
): json is Extract<Json, { kind: K }> {
  return typeof json === 'object' && json !== null && json.kind === kind;
}

function excessiveAliasing(): ConfigError {
  return new ConfigError('yaml: document contains excessive aliasing');
}

function infinityName(text: string): string {
  if (text.toLowerCase() === '.nan') return 'NaN';
  return text.startsWith('-') ? '-Inf' : '+Inf';
}
