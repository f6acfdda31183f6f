import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { inClusterAccess } from './in-cluster.ts';
import { kubeconfigAccess } from './kubeconfig.ts';
import { proxyFromEnv } from './proxy.ts';

export interface AccessOptions {
  /** `clientConnection.kubeconfig`; may be empty. */
  readonly kubeconfig: string;
  /** `--master`; may be empty. */
  readonly master: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where a pod's service account is mounted; for tests. */
  readonly serviceAccountDirectory?: string;
}

/** How to reach the API server: by kubeconfig and `--master` or, with neither, as the pod's service account. */
export async function clusterAccess(options: AccessOptions): Promise<ClusterAccess> {
  const access = await configuredAccess(options);
  if (access.proxy !== undefined) return access;
  const proxy = proxyFromEnv(access.server, options.env);
  return proxy === undefined ? access : { ...access, proxy };
}

function configuredAccess(options: AccessOptions): Promise<ClusterAccess> {
  const { kubeconfig, master, env, clock, logger, serviceAccountDirectory: directory } = options;
  if (kubeconfig !== '' || master !== '')
    return kubeconfigAccess({ path: kubeconfig, master, env, clock, logger });
  logger.info('Neither kubeconfig file nor master URL was specified, falling back to in-cluster config');
  return inClusterAccess({ env, logger, ...(directory !== undefined && { directory }) });
}
