import { parseCIDR, parseIP } from '../model/ip.ts';
import { isProxyMode, proxyModes } from '../model/proxy-mode.ts';
import { ConfigError, joinMessages } from './errors.ts';
import { FeatureGates, type GateReport } from './feature-gates.ts';
import { FieldErrors } from './field-errors.ts';
import type { ConfigDraft, Duration, ProxyConfig } from './types.ts';
import { KIND } from './v1alpha1.ts';
import { validateLogging } from './validate-logging.ts';

/** Hidden metrics can be shown for the previous minor version only; this program stands in for 1.37. */
const PREVIOUS_MINOR = '1.36';

const NOT_NEGATIVE = 'must be greater than or equal to 0';
const POSITIVE = 'must be greater than 0';
const localModes = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix', ''];

/** Validates a completed configuration. Throws a ConfigError with all errors. */
export function validated(config: ConfigDraft, gates: FeatureGates, report?: GateReport): ProxyConfig {
  const errors = validateConfig(config, gates, report);
  const { mode } = config;
  if (errors.length > 0 || !isProxyMode(mode)) throw new ConfigError(joinMessages(errors));
  return { ...config, mode };
}

/**
 * Returns the errors of a configuration, in upstream's order and words; empty when it is usable. It sets the gates
 * again to check them, so `report` is called again.
 */
export function validateConfig(config: ConfigDraft, gates: FeatureGates, report?: GateReport): string[] {
  const errors = new FieldErrors();
  validateGates(config, errors, report);
  const rules = [
    validateIptables,
    validateIpvs,
    validateNftables,
    validateLinux,
    validateMode,
    validatePeriods,
    validateAddresses,
    validateNodePortAddresses,
    validateHiddenMetrics,
    validateDetectLocal,
  ];
  for (const rule of rules) rule(config, errors, gates);
  return [...errors.messages, ...validateLogging(config.logging, gates, `${KIND}.logging`)];
}

type Rule = (config: ConfigDraft, errors: FieldErrors, gates: FeatureGates) => void;

function validateGates({ featureGates }: ConfigDraft, errors: FieldErrors, report?: GateReport): void {
  try {
    FeatureGates.of(featureGates, report);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    errors.invalid(`${KIND}.featureGates`, featureGates, error.message);
  }
}

const validateIptables: Rule = ({ iptables }, errors) => {
  inRange(errors, 'KubeProxyIPTablesConfiguration.MasqueradeBit', iptables.masqueradeBit, 0, 31);
};

const validateIpvs: Rule = ({ mode, ipvs }, errors) => {
  if (mode !== 'ipvs') return;
  const section = 'KubeProxyIPVSConfiguration';
  notNegative(errors, `${section}.TCPTimeout`, ipvs.tcpTimeout);
  notNegative(errors, `${section}.TCPFinTimeout`, ipvs.tcpFinTimeout);
  notNegative(errors, `${section}.UDPTimeout`, ipvs.udpTimeout);
  for (const [i, cidr] of (ipvs.excludeCIDRs ?? []).entries()) {
    if (!parseCIDR(cidr))
      errors.invalid(`${KIND}.${section}.ExcludeCidrs[${i}]`, cidr, 'must be a valid CIDR');
  }
};

const validateNftables: Rule = ({ mode, nftables }, errors) => {
  if (mode !== 'nftables') return;
  inRange(errors, 'KubeProxyNFTablesConfiguration.MasqueradeBit', nftables.masqueradeBit, 0, 31);
};

const validateLinux: Rule = ({ linux: { conntrack, oomScoreAdj } }, errors) => {
  const section = 'KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration';
  notNegative(errors, `${section}.MaxPerCore`, conntrack.maxPerCore);
  notNegative(errors, `${section}.Min`, conntrack.min);
  notNegative(errors, `${section}.TCPEstablishedTimeout`, conntrack.tcpEstablishedTimeout);
  notNegative(errors, `${section}.TCPCloseWaitTimeout`, conntrack.tcpCloseWaitTimeout);
  notNegative(errors, `${section}.UDPTimeout`, conntrack.udpTimeout);
  notNegative(errors, `${section}.UDPStreamTimeout`, conntrack.udpStreamTimeout);
  inRange(errors, 'KubeProxyLinuxConfiguration.OOMScoreAdj', oomScoreAdj, -1000, 1000);
};

const validateMode: Rule = ({ mode }, errors, gates) => {
  const valid = proxyModes.filter((name) => name !== 'ipvs' || gates.enabled('KubeProxyIPVS'));
  if (['', ...valid].includes(mode)) return;
  const detail = `must be ${valid.join(', ')} or blank (blank means the best-available proxy [currently iptables])`;
  errors.invalid(`${KIND}.Mode.ProxyMode`, mode, detail);
};

const validatePeriods: Rule = (config, errors) => {
  notNegative(errors, 'ClientConnection.Burst', config.clientConnection.burst);
  const { configSyncPeriod, syncPeriod, minSyncPeriod } = config;
  if (configSyncPeriod <= 0n) errors.invalid(`${KIND}.ConfigSyncPeriod`, configSyncPeriod, POSITIVE);
  if (syncPeriod <= 0n) errors.invalid(`${KIND}.SyncPeriod`, syncPeriod, POSITIVE);
  notNegative(errors, 'MinSyncPeriod', minSyncPeriod);
  if (minSyncPeriod > syncPeriod) {
    const detail = `must be greater than or equal to ${KIND}.MinSyncPeriod`;
    errors.invalid(`${KIND}.SyncPeriod`, minSyncPeriod, detail);
  }
};

const validateAddresses: Rule = (config, errors) => {
  if (!parseIP(config.bindAddress)) {
    const detail = 'not a valid textual representation of an IP address';
    errors.invalid(`${KIND}.BindAddress`, config.bindAddress, detail);
  }
  if (config.healthzBindAddress !== '') {
    validateHostPort(`${KIND}.HealthzBindAddress`, config.healthzBindAddress, errors);
  }
  validateHostPort(`${KIND}.MetricsBindAddress`, config.metricsBindAddress, errors);
};

function validateHostPort(path: string, address: string, errors: FieldErrors): void {
  const match = /^(?:\[([^[\]]*)\]|([^[\]:]*)):([^[\]:]*)$/.exec(address);
  if (!match) {
    errors.invalid(path, address, 'must be IP:port');
    return;
  }
  const [, bracketed, plain, port = ''] = match;
  const host = bracketed ?? plain ?? '';
  if (!parseIP(host)) errors.invalid(path, host, 'must be a valid IP');
  const isPort = /^\+?[0-9]+$/.test(port) && Number(port) >= 1 && Number(port) <= 65535;
  if (!isPort) errors.invalid(path, port, 'must be a valid port');
}

const nodePortKeywords = ['primary', 'localhost', 'all'];

const validateNodePortAddresses: Rule = ({ nodePortAddresses }, errors) => {
  const seen = new Set<string>();
  for (const [i, address] of (nodePortAddresses ?? []).entries()) {
    const path = `${KIND}.NodePortAddresses[${i}]`;
    if (nodePortKeywords.includes(address)) {
      if (seen.has(address)) errors.duplicate(path, address);
      seen.add(address);
    } else if (!parseCIDR(address)) {
      const keywords = nodePortKeywords.map((keyword) => `'${keyword}'`).join(', ');
      errors.invalid(path, address, `must be a valid CIDR or one of the keywords ${keywords}`);
    }
  }
};

const validateHiddenMetrics: Rule = ({ showHiddenMetricsForVersion: version }, errors) => {
  if (version === '' || version === PREVIOUS_MINOR) return;
  const inner = new FieldErrors();
  const allowed = `must be omitted or have the value '${PREVIOUS_MINOR}'; only the previous minor version is allowed`;
  inner.invalid('showHiddenMetricsForVersion', version, allowed);
  const detail = `invalid showHiddenMetricsForVersion: ${inner.messages[0]}`;
  errors.invalid(`${KIND}.ShowHiddenMetricsForVersion`, version, detail);
};

const validateDetectLocal: Rule = ({ detectLocalMode, detectLocal }, errors) => {
  const section = `${KIND}.DetectLocalConfiguration`;
  if (!localModes.includes(detectLocalMode)) {
    errors.notSupported(`${KIND}.DetectLocalMode`, detectLocalMode, localModes);
  }
  if (detectLocalMode === 'BridgeInterface' && detectLocal.bridgeInterface === '') {
    errors.invalid(`${section}.InterfaceName`, '', 'must not be empty');
  }
  if (detectLocalMode === 'InterfaceNamePrefix' && detectLocal.interfaceNamePrefix === '') {
    errors.invalid(`${section}.InterfacePrefix`, '', 'must not be empty');
  }
  if (detectLocalMode === 'ClusterCIDR') {
    validateClusterCIDRs(`${section}.ClusterCIDRs`, detectLocal.clusterCIDRs, errors);
  }
};

function validateClusterCIDRs(path: string, cidrs: readonly string[], errors: FieldErrors): void {
  const parsed = cidrs.map(parseCIDR);
  const [first, second] = parsed;
  if (cidrs.length > 2 || (first && second && first.family === second.family)) {
    const detail =
      'must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]';
    errors.invalid(path, cidrs, detail);
    return;
  }
  for (const [i, cidr] of cidrs.entries()) {
    if (parsed[i]) continue;
    const detail = 'must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)';
    errors.invalid(`${path}[${i}]`, cidr, detail);
  }
}

function notNegative(errors: FieldErrors, path: string, value: number | Duration | null): void {
  if (value !== null && value < 0) errors.invalid(`${KIND}.${path}`, value, NOT_NEGATIVE);
}

function inRange(errors: FieldErrors, path: string, value: number | null, low: number, high: number): void {
  if (value === null || (value >= low && value <= high)) return;
  errors.invalid(`${KIND}.${path}`, value, `must be within the range [${low}, ${high}]`);
}
