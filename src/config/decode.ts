import { quote } from '../lib/go-quote.ts';
import { toInternal } from './convert.ts';
import { decodeValue } from './decode-value.ts';
import { setDefaults } from './defaults.ts';
import { ConfigError } from './errors.ts';
import { type Json, type JsonObject, jsonKind } from './json-tree.ts';
import { readJson } from './read-json.ts';
import { readYaml } from './read-yaml.ts';
import type { ConfigDraft } from './types.ts';
import { API_VERSION, KIND, v1alpha1 } from './v1alpha1.ts';

/** A configuration file with its defaults filled in. */
export interface DecodedConfig {
  readonly config: ConfigDraft;
  /** Errors of strict decoding, which do not prevent the use of the file; see `strictDecodingError`. */
  readonly strictErrors: string[];
}

/** Far more than a real file has; bounds the time that a hostile one can take. */
export const MAX_CONFIG_SIZE = 256 * 1024;

/**
 * Decodes a configuration file: JSON if its first character is a brace, else the first YAML document. Unknown fields
 * are dropped, and of repeated fields the last wins; both are listed in `strictErrors`. Other errors throw a
 * ConfigError. Platform defaults are not applied yet.
 */
export async function decodeConfig(text: string): Promise<DecodedConfig> {
  if (text.length > MAX_CONFIG_SIZE) {
    throw new ConfigError(`configuration has ${text.length} characters, at most ${MAX_CONFIG_SIZE} are read`);
  }
  const { value, duplicates } = await readTree(text);
  const object = checkTypeMeta(value, text);
  const { value: external, strictErrors } = decodeValue(v1alpha1, object);
  if (duplicates.length > 0) {
    strictErrors.unshift(`yaml: unmarshal errors:\n${duplicates.map((line) => `  ${line}`).join('\n')}`);
  }
  const config = toInternal(setDefaults(external));
  return withUDPIdleTimeout(object, config, strictErrors);
}

const UDP_IDLE_TIMEOUT = 'udpIdleTimeout';

/** Accepts a field that upstream removed with userspace mode, in that mode only. */
function withUDPIdleTimeout(object: JsonObject, config: ConfigDraft, strictErrors: string[]): DecodedConfig {
  const udpIdleTimeout = object.entries.findLast(([name]) => name === UDP_IDLE_TIMEOUT)?.[1];
  if (config.mode !== 'userspace' || typeof udpIdleTimeout !== 'string') return { config, strictErrors };
  return {
    config: { ...config, userspace: { ...config.userspace, udpIdleTimeout } },
    strictErrors: strictErrors.filter((error) => error !== `unknown field "${UDP_IDLE_TIMEOUT}"`),
  };
}

/** The text upstream logs when it falls back to lenient decoding. */
export function strictDecodingError(strictErrors: readonly string[]): string {
  return `strict decoding error: ${strictErrors.join(', ')}`;
}

async function readTree(text: string): Promise<{ value: Json; duplicates: string[] }> {
  // White space may precede the brace. After a byte order mark the text is YAML.
  if (!/^(?!\ufeff)\s*\{/.test(text)) return readYaml(text);
  try {
    return { value: readJson(text), duplicates: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw typeMetaError(error.message);
  }
}

/** Checks kind and apiVersion before the fields are decoded. */
function checkTypeMeta(json: Json, text: string): JsonObject {
  const object = json ?? { kind: 'object', entries: [] };
  if (typeof object !== 'object' || object.kind !== 'object') {
    throw typeMetaError(`json: cannot unmarshal ${jsonKind(json)} into Go value of type ${KIND}`);
  }
  const { apiVersion, kind } = typeMetaOf(object);
  const parts = apiVersion.split('/');
  if (parts.length > 2) throw new ConfigError(`unexpected GroupVersion string: ${apiVersion}`);
  if (kind === '') throw new ConfigError(`Object 'Kind' is missing in '${text}'`);
  if (parts.at(-1) === '') throw new ConfigError(`Object 'apiVersion' is missing in '${text}'`);
  if (kind !== KIND || apiVersion !== API_VERSION) {
    const version = apiVersion.replace(/^\//, '');
    throw new ConfigError(`no kind ${quote(kind)} is registered for version ${quote(version)}`);
  }
  return object;
}

/** Go matches these two names without regard to case, and the last one wins; other fields are matched exactly. */
function typeMetaOf(object: JsonObject): { apiVersion: string; kind: string } {
  const found = { apiVersion: '', kind: '' };
  for (const [key, value] of object.entries) {
    const name = typeMetaNames.find((field) => field.toLowerCase() === key.toLowerCase());
    if (name === undefined || value === null) continue;
    if (typeof value !== 'string') {
      const problem = `cannot unmarshal ${jsonKind(value)} into Go struct field .${name} of type string`;
      throw typeMetaError(`json: ${problem}`);
    }
    found[name] = value;
  }
  return found;
}

const typeMetaNames = ['apiVersion', 'kind'] as const;

function typeMetaError(cause: string): ConfigError {
  return new ConfigError(`couldn't get version/kind; json parse error: ${cause}`);
}
