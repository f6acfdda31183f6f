import { parseListenAddress } from '../admin/listen.ts';
import { readConfigFile } from '../config/config-file.ts';
import { decodeConfig } from '../config/decode.ts';
import { applyPlatformDefaults } from '../config/defaults.ts';
import { canonicalIP, joinHostPort } from '../model/ip.ts';
import type { CtlOptions } from './flags.ts';
import type { Environment } from './terminal.ts';

const DEFAULT_SERVER = 'http://127.0.0.1:10249';
/** Where a server that listens on all addresses is reached. */
const loopbackOf: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * The URL of kube-proxy's metrics server: from --server, from its configuration file, from the environment, or the
 * default one.
 */
export async function serverAddress({ server, config }: CtlOptions, env: Environment): Promise<string> {
  if (server !== '') return server;
  if (config === '') return env.KUBE_PROXYCTL_SERVER || DEFAULT_SERVER;
  const decoded = await decodeConfig(await readConfigFile(config));
  const { metricsBindAddress } = applyPlatformDefaults(decoded.config).config;
  if (metricsBindAddress === '') throw new Error(`${config} switches the metrics server off`);
  const { host, port } = parseListenAddress(metricsBindAddress);
  const ip = canonicalIP(host) ?? host;
  return `http://${joinHostPort(loopbackOf[ip] ?? ip, port)}`;
}
