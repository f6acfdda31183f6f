import { join } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { FileError, readText } from '../lib/file-error.ts';
import { joinHostPort } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import { AccessError, type ClusterAccess, urlOf } from './cluster-access.ts';
import { tokenFileCredentials } from './credentials.ts';
import { kubeconfigAccess } from './kubeconfig.ts';
import { proxyFromEnv } from './proxy.ts';
import { RotatedFile } from './rotated-file.ts';

export interface AccessOptions {
  /** `clientConnection.kubeconfig`; may be empty. */
  readonly kubeconfig: string;
  /** `--master`; may be empty. */
  readonly master: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where the pod's service account is mounted; tests set it. */
  readonly serviceAccountDirectory?: string;
}

/** Decides how to reach the API server: by kubeconfig and `--master` or, with neither, as the pod's service account. */
export async function clusterAccess(options: AccessOptions): Promise<ClusterAccess> {
  const access = await configuredAccess(options);
  if (access.proxy !== undefined) return access;
  const proxy = proxyFromEnv(access.server, options.env);
  return proxy === undefined ? access : { ...access, proxy };
}

function configuredAccess(options: AccessOptions): Promise<ClusterAccess> {
  const { kubeconfig, master } = options;
  if (kubeconfig !== '' || master !== '') return kubeconfigAccess({ ...options, path: kubeconfig });
  options.logger.info(
    'Neither kubeconfig file nor master URL was specified, falling back to in-cluster config',
  );
  return inClusterAccess(options);
}

/** Access as the pod's service account. Rejects with `AccessError` or `FileError`. */
async function inClusterAccess(options: AccessOptions): Promise<ClusterAccess> {
  const {
    env,
    logger,
    serviceAccountDirectory: directory = '/var/run/secrets/kubernetes.io/serviceaccount',
  } = options;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new AccessError(
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    );
  }
  const authority = joinHostPort(host, port);
  const server = urlOf(`https://${authority}`, 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT');
  const tokenFile = join(directory, 'token');
  await readText(tokenFile);
  const caFile = join(directory, 'ca.crt');
  return {
    server,
    authority,
    ...((await isReadable(caFile, logger)) && { ca: { file: caFile } }),
    skipVerify: false,
    disableCompression: false,
    credentials: tokenFileCredentials(new RotatedFile(tokenFile, logger)),
    headers: {},
  };
}

/** Returns false without the cluster's CA: the server may still have a certificate that the system trusts. */
async function isReadable(caFile: string, logger: Logger): Promise<boolean> {
  try {
    await readText(caFile);
    return true;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    logger.error(error, 'Expected to load root CA config', { path: caFile });
    return false;
  }
}
