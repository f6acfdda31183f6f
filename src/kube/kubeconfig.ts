import { dirname, resolve } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { readText } from '../lib/file-error.ts';
import type { Logger } from '../obs/log.ts';
import { AccessError, authorityOf, type ClusterAccess, type PemSource, urlOf } from './cluster-access.ts';
import { type Credentials, fixedCredentials, tokenFileCredentials } from './credentials.ts';
import { ExecPlugin } from './exec-plugin.ts';
import type { Fields } from './fields.ts';
import {
  type Impersonation,
  type KubeconfigCluster,
  type KubeconfigExec,
  type KubeconfigUser,
  parseKubeconfig,
  readFor,
  readKubeconfig,
} from './kubeconfig-file.ts';
import { RotatedFile } from './rotated-file.ts';

export interface KubeconfigOptions {
  readonly path: string;
  /** Overrides the cluster's server unless empty. */
  readonly master: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

/**
 * Access by the current context of a kubeconfig file, whose files must be readable now. With an empty path, access to
 * `master` without credentials. Rejects with `AccessError` or `FileError`.
 */
export async function kubeconfigAccess(options: KubeconfigOptions): Promise<ClusterAccess> {
  const { path, master } = options;
  const config = path === '' ? await parseKubeconfig('', path) : await readKubeconfig(path);
  const where = `kubeconfig ${path}`;
  const context = config.contexts.get(config.currentContext);
  if (context === undefined && config.currentContext !== '') {
    throw new AccessError(`${where}: current-context: no context is called "${config.currentContext}"`);
  }
  const cluster = context && config.clusters.get(context.cluster);
  if (context !== undefined && cluster === undefined && master === '') {
    throw new AccessError(
      `${where}: context "${config.currentContext}": no cluster is called "${context.cluster}"`,
    );
  }
  const user = context && config.users.get(context.user);
  if (context !== undefined && context.user !== '' && user === undefined) {
    throw new AccessError(
      `${where}: context "${config.currentContext}": no user is called "${context.user}"`,
    );
  }
  if (master === '' && (cluster === undefined || cluster.server === '')) {
    if (cluster !== undefined) throw new AccessError(`${where}: cluster "${context?.cluster}" has no server`);
    throw new AccessError(
      'invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable',
    );
  }
  const builder = new AccessBuilder(options, {
    cluster: `${where}: cluster "${context?.cluster}"`,
    user: `${where}: user "${context?.user}"`,
  });
  return builder.build(cluster, user);
}

/** Builds the access from a cluster and a user; `#where` names them in messages. */
class AccessBuilder {
  readonly #options: KubeconfigOptions;
  readonly #where: { readonly cluster: string; readonly user: string };
  readonly #directory: string;

  constructor(options: KubeconfigOptions, where: { readonly cluster: string; readonly user: string }) {
    this.#options = options;
    this.#where = where;
    this.#directory = dirname(resolve(options.path));
  }

  async build(
    cluster: KubeconfigCluster | undefined,
    user: KubeconfigUser | undefined,
  ): Promise<ClusterAccess> {
    const { master } = this.#options;
    const ca = await this.#pem(
      `${this.#where.cluster}: certificate-authority`,
      cluster?.certificateAuthority,
      cluster?.certificateAuthorityData,
    );
    const skipVerify = cluster?.insecureSkipTlsVerify ?? false;
    if (skipVerify && ca !== undefined) {
      throw new AccessError(
        `${this.#where.cluster}: insecure-skip-tls-verify and certificate-authority exclude each other`,
      );
    }
    const certificate = await this.#clientCertificate(user);
    const usesTls = skipVerify || ca !== undefined || certificate !== undefined;
    const written = withScheme(master || (cluster?.server ?? ''), usesTls);
    const server = urlOf(written, master ? '--master' : `${this.#where.cluster}: server`);
    const authority = authorityOf(written);
    // The file's certificate name belongs to the file's server, not to --master.
    const serverName = master === '' ? cluster?.tlsServerName : undefined;
    const proxy = cluster?.proxyUrl
      ? urlOf(cluster.proxyUrl, `${this.#where.cluster}: proxy-url`)
      : undefined;
    return {
      server,
      ...(authority && { authority }),
      ...(ca && { ca }),
      ...certificate,
      ...(serverName && { serverName }),
      skipVerify,
      ...(proxy && { proxy }),
      disableCompression: cluster?.disableCompression ?? false,
      credentials: await this.#credentials(user, cluster && { cluster, server: written, serverName, ca }),
      headers: impersonationHeaders(user?.impersonate),
    };
  }

  async #clientCertificate(
    user: KubeconfigUser | undefined,
  ): Promise<{ clientCert: PemSource; clientKey: PemSource } | undefined> {
    const where = this.#where.user;
    const cert = await this.#pem(
      `${where}: client-certificate`,
      user?.clientCertificate,
      user?.clientCertificateData,
    );
    const key = await this.#pem(`${where}: client-key`, user?.clientKey, user?.clientKeyData);
    if (cert === undefined && key === undefined) return undefined;
    if (key === undefined) throw new AccessError(`${where}: client-certificate is given without client-key`);
    if (cert === undefined) throw new AccessError(`${where}: client-key is given without client-certificate`);
    return { clientCert: cert, clientKey: key };
  }

  /** Data takes precedence over a file. */
  async #pem(
    what: string,
    file: string | undefined,
    data: string | undefined,
  ): Promise<PemSource | undefined> {
    if (data !== undefined && data !== '') {
      const text = Buffer.from(data, 'base64').toString('utf8');
      if (!text.includes('-----BEGIN '))
        throw new AccessError(`${what}-data: not a base64 encoded PEM block`);
      return { text };
    }
    if (file === undefined || file === '') return undefined;
    const path = resolve(this.#directory, file);
    await readFor(what, path);
    return { file: path };
  }

  async #credentials(user: KubeconfigUser | undefined, reached: Reached | undefined): Promise<Credentials> {
    const where = this.#where.user;
    if (user === undefined) return fixedCredentials({});
    if (user.hasPassword) throw new AccessError(`${where}: username and password are not supported`);
    if (user.authProvider !== '') {
      throw new AccessError(`${where}: auth-provider "${user.authProvider}" is not supported; use exec`);
    }
    if (user.tokenFile !== '') {
      const path = resolve(this.#directory, user.tokenFile);
      await readFor(`${where}: tokenFile`, path);
      return tokenFileCredentials(new RotatedFile(path, this.#options.logger));
    }
    if (user.token !== '') return fixedCredentials({ token: user.token });
    return user.exec === undefined ? fixedCredentials({}) : this.#execPlugin(user.exec, reached);
  }

  async #execPlugin(exec: KubeconfigExec, reached: Reached | undefined): Promise<ExecPlugin> {
    const { env, clock } = this.#options;
    const where = `${this.#where.user}: exec`;
    const { apiVersion, interactiveMode: mode } = exec;
    if (!execVersions.includes(apiVersion)) {
      throw new AccessError(
        `${where}: apiVersion "${apiVersion}" is not supported; use ${execVersions.join(' or ')}`,
      );
    }
    if (exec.command === '') throw new AccessError(`${where}: command is empty`);
    if (mode === undefined && apiVersion === execVersions[0]) {
      throw new AccessError(`${where}: interactiveMode must be set for apiVersion "${apiVersion}"`);
    }
    if (mode === 'Always') throw new AccessError(`${where}: interactiveMode "Always" needs a terminal`);
    if (mode !== undefined && mode !== 'Never' && mode !== 'IfAvailable') {
      throw new AccessError(`${where}: interactiveMode "${mode}" is none of Never, IfAvailable, Always`);
    }
    const command = exec.command.includes('/') ? resolve(this.#directory, exec.command) : exec.command;
    const info = exec.provideClusterInfo && reached !== undefined ? await clusterInfo(reached) : undefined;
    return new ExecPlugin({ exec, command, cluster: info, env, clock });
  }
}

/** A server without a scheme is spoken to over TLS exactly when the file says something about TLS. */
function withScheme(server: string, usesTls: boolean): string {
  return server.includes('://') ? server : `${usesTls ? 'https' : 'http'}://${server}`;
}

/** What an exec plugin may get to know about the cluster. */
interface Reached {
  readonly cluster: KubeconfigCluster;
  /** As written: a plugin may compare it as text, where `:443` makes a difference. */
  readonly server: string;
  readonly serverName: string | undefined;
  readonly ca: PemSource | undefined;
}

/** `spec.cluster` of an ExecCredential. */
async function clusterInfo({ cluster, server, serverName, ca }: Reached): Promise<Fields> {
  const pem = ca === undefined ? '' : 'text' in ca ? ca.text : await readText(ca.file);
  const said = {
    server,
    'tls-server-name': serverName,
    'insecure-skip-tls-verify': cluster.insecureSkipTlsVerify,
    'certificate-authority-data': Buffer.from(pem).toString('base64'),
    'proxy-url': cluster.proxyUrl,
    'disable-compression': cluster.disableCompression,
    config: cluster.execExtension,
  };
  const isSaid = ([, value]: [string, unknown]) => value !== '' && value !== false && value !== undefined;
  return Object.fromEntries(Object.entries(said).filter(isSaid));
}

function impersonationHeaders(as: Impersonation | undefined): ClusterAccess['headers'] {
  if (as === undefined || as.user === '') return {};
  const headers: Record<string, string | readonly string[]> = { 'Impersonate-User': as.user };
  if (as.uid !== '') headers['Impersonate-Uid'] = as.uid;
  if (as.groups.length > 0) headers['Impersonate-Group'] = as.groups;
  for (const [key, values] of as.extra) headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = values;
  return headers;
}
