import { FileError, readText, stat } from '../lib/file-error.ts';
import { AccessError } from './cluster-access.ts';
import {
  booleanAt,
  FieldFault,
  type Fields,
  fieldsOf,
  listAt,
  objectAt,
  optionalStringAt,
  stringAt,
  stringsAt,
} from './fields.ts';

/** `clusters[].cluster` */
export interface KubeconfigCluster {
  readonly server: string;
  readonly tlsServerName: string;
  readonly insecureSkipTlsVerify: boolean;
  readonly certificateAuthority: string;
  readonly certificateAuthorityData: string;
  readonly proxyUrl: string;
  readonly disableCompression: boolean;
  /** Extension `client.authentication.k8s.io/exec`, for exec plugins that ask for cluster information. */
  readonly execExtension: unknown;
}

/** `users[].user` */
export interface KubeconfigUser {
  readonly clientCertificate: string;
  readonly clientCertificateData: string;
  readonly clientKey: string;
  readonly clientKeyData: string;
  readonly token: string;
  readonly tokenFile: string;
  readonly hasPassword: boolean;
  /** Name of an `auth-provider`; empty when there is none. */
  readonly authProvider: string;
  readonly exec: KubeconfigExec | undefined;
  readonly impersonate: Impersonation;
}

export interface Impersonation {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** `users[].user.exec` */
export interface KubeconfigExec {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: string | undefined;
}

export interface KubeconfigContext {
  readonly cluster: string;
  readonly user: string;
}

/** A kubeconfig file as written: references and paths are not resolved. */
export interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
}

/** Fields whose values must not be printed. */
const secret = /token|password|data|\.env|\.value|client-key/i;

/** Reads a kubeconfig file, YAML or JSON. */
export async function readKubeconfig(path: string): Promise<Kubeconfig> {
  try {
    await stat(path);
  } catch (error) {
    throw new FileError('stat', path, error);
  }
  return parseKubeconfig(await readFor(`error loading config file ${JSON.stringify(path)}`, path), path);
}

/** Reads a file; `what` names its purpose in the error. */
export async function readFor(what: string, path: string): Promise<string> {
  try {
    return await readText(path);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new AccessError(`${what}: ${error.message}`, { cause: error });
  }
}

/** `path` is used in messages only. */
export async function parseKubeconfig(text: string, path: string): Promise<Kubeconfig> {
  const raw = await parseYaml(text, path);
  try {
    return kubeconfigOf(raw === null || raw === undefined ? {} : fieldsOf(raw));
  } catch (error) {
    if (!(error instanceof FieldFault)) throw error;
    const detail = secret.test(error.path)
      ? `want ${error.wanted}`
      : error.message.slice(error.path.length + 2);
    throw new AccessError(`kubeconfig ${path}: ${error.path === '' ? '' : `${error.path}: `}${detail}`);
  }
}

async function parseYaml(text: string, path: string): Promise<unknown> {
  // A start with the service account needs no YAML parser.
  const { LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const [problem] = document.errors;
  // Not the parser's message: it quotes the text, which may be a secret.
  if (problem !== undefined) {
    const { line, col } = lines.linePos(problem.pos[0]);
    throw new AccessError(
      `kubeconfig ${path}: not valid YAML at line ${line}, column ${col} (${problem.code})`,
    );
  }
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    throw new AccessError(`kubeconfig ${path}: not valid YAML: too many aliases`);
  }
}

function kubeconfigOf(config: Fields): Kubeconfig {
  const kind = stringAt(config, 'kind');
  if (kind !== '' && kind !== 'Config') throw new FieldFault('kind', kind, '"Config"');
  const apiVersion = stringAt(config, 'apiVersion');
  if (apiVersion !== '' && apiVersion !== 'v1') throw new FieldFault('apiVersion', apiVersion, '"v1"');
  return {
    currentContext: stringAt(config, 'current-context'),
    clusters: namedAt(config, 'clusters', 'cluster', clusterOf),
    contexts: namedAt(config, 'contexts', 'context', (context) => ({
      cluster: stringAt(context, 'cluster'),
      user: stringAt(context, 'user'),
    })),
    users: namedAt(config, 'users', 'user', userOf),
  };
}

/** Reads a map written as a list: `- name: …` with the value under `member`. */
function namedAt<T>(
  config: Fields,
  key: string,
  member: string,
  decode: (value: Fields) => T,
): Map<string, T> {
  const found = new Map<string, T>();
  listAt(config, key, (item) => {
    const fields = fieldsOf(item);
    const name = stringAt(fields, 'name');
    if (found.has(name)) throw new FieldFault('name', name, 'a name that is used once');
    found.set(name, objectAt(fields, member, decode));
  });
  return found;
}

function clusterOf(cluster: Fields): KubeconfigCluster {
  const extensions = listAt(cluster, 'extensions', fieldsOf);
  return {
    server: stringAt(cluster, 'server'),
    tlsServerName: stringAt(cluster, 'tls-server-name'),
    insecureSkipTlsVerify: booleanAt(cluster, 'insecure-skip-tls-verify') ?? false,
    certificateAuthority: stringAt(cluster, 'certificate-authority'),
    certificateAuthorityData: stringAt(cluster, 'certificate-authority-data'),
    proxyUrl: stringAt(cluster, 'proxy-url'),
    disableCompression: booleanAt(cluster, 'disable-compression') ?? false,
    execExtension: extensions.find(({ name }) => name === 'client.authentication.k8s.io/exec')?.extension,
  };
}

function userOf(user: Fields): KubeconfigUser {
  const exec = user.exec;
  return {
    clientCertificate: stringAt(user, 'client-certificate'),
    clientCertificateData: stringAt(user, 'client-certificate-data'),
    clientKey: stringAt(user, 'client-key'),
    clientKeyData: stringAt(user, 'client-key-data'),
    token: stringAt(user, 'token'),
    tokenFile: stringAt(user, 'tokenFile'),
    hasPassword: stringAt(user, 'username') !== '' || stringAt(user, 'password') !== '',
    authProvider: objectAt(user, 'auth-provider', (provider) => stringAt(provider, 'name')),
    exec: exec === undefined || exec === null ? undefined : objectAt(user, 'exec', execOf),
    impersonate: {
      user: stringAt(user, 'as'),
      uid: stringAt(user, 'as-uid'),
      groups: stringsAt(user, 'as-groups'),
      extra: objectAt(
        user,
        'as-user-extra',
        (extra) => new Map(Object.keys(extra).map((key) => [key, stringsAt(extra, key)])),
      ),
    },
  };
}

function execOf(exec: Fields): KubeconfigExec {
  return {
    apiVersion: stringAt(exec, 'apiVersion'),
    command: stringAt(exec, 'command'),
    args: stringsAt(exec, 'args'),
    env: listAt(exec, 'env', (item) => {
      const variable = fieldsOf(item);
      return { name: stringAt(variable, 'name'), value: stringAt(variable, 'value') };
    }),
    installHint: stringAt(exec, 'installHint'),
    provideClusterInfo: booleanAt(exec, 'provideClusterInfo') ?? false,
    interactiveMode: optionalStringAt(exec, 'interactiveMode'),
  };
}
