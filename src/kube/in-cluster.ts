import { join } from 'node:path';
import { joinHostPort } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import { AccessError, type ClusterAccess, urlOf } from './cluster-access.ts';
import { tokenFileCredentials } from './credentials.ts';
import { FileError, RotatedFile, readText } from './files.ts';

export interface InClusterOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where the service account is mounted. */
  readonly directory?: string;
  readonly logger: Logger;
}

const serviceAccountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Access as the pod's service account. Fails with `AccessError` or `FileError`. */
export async function inClusterAccess(options: InClusterOptions): Promise<ClusterAccess> {
  const { env, logger, directory = serviceAccountDirectory } = options;
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

/** Without the cluster's CA, the server may still have a certificate that the system trusts. */
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
