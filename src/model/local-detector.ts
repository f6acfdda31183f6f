import { type Family, formatCIDR, parseCIDR } from './ip.ts';

/** How rules recognise packets from pods of this node; `none` omits those rules. */
export type LocalDetector =
  | { readonly kind: 'cidr'; readonly cidr: string }
  | { readonly kind: 'interface'; readonly name: string }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'none' };

export interface LocalDetectorOptions {
  /** `detectLocalMode`; an unknown mode detects nothing. */
  readonly mode: string;
  readonly clusterCIDRs: readonly string[];
  /** `spec.podCIDRs` of the node, as found at start-up. */
  readonly podCIDRs: readonly string[];
  readonly bridgeInterface: string;
  readonly interfaceNamePrefix: string;
  readonly primary: Family;
}

/** A problem to log; it does not stop the program. */
export interface DetectorProblem {
  readonly severity: 'error' | 'info';
  readonly text: string;
}

export interface LocalDetectors {
  readonly detectors: Readonly<Record<Family, LocalDetector>>;
  readonly problems: readonly DetectorProblem[];
}

const none: LocalDetector = { kind: 'none' };
/** The longest interface name, and the longest prefix that leaves room for a wildcard. */
const nameBytes = 15;
const prefixBytes = nameBytes - 1;

/** Chooses the detector of each family. Throws when an interface name or prefix is too long for rules. */
export function localDetectors(options: LocalDetectorOptions): LocalDetectors {
  switch (options.mode) {
    case 'ClusterCIDR':
      return fromCIDRs('clusterCIDR', options.clusterCIDRs, options.primary);
    case 'NodeCIDR':
      return fromCIDRs('spec.podCIDRs of the node', options.podCIDRs, options.primary);
    case 'BridgeInterface':
      checkLength('bridgeInterface', options.bridgeInterface, nameBytes);
      return forBoth({ kind: 'interface', name: options.bridgeInterface });
    case 'InterfaceNamePrefix':
      checkLength('interfaceNamePrefix', options.interfaceNamePrefix, prefixBytes);
      return forBoth({ kind: 'prefix', prefix: options.interfaceNamePrefix });
    default:
      return forBoth(none);
  }
}

/** Upstream does not check this: it starts, and then every sync fails. */
function checkLength(field: string, value: string, maxBytes: number): void {
  if (Buffer.byteLength(value) <= maxBytes) return;
  throw new Error(`detectLocal.${field}: ${JSON.stringify(value)} is longer than ${maxBytes} bytes`);
}

function forBoth(detector: LocalDetector): LocalDetectors {
  return { detectors: { IPv4: detector, IPv6: detector }, problems: [] };
}

function fromCIDRs(source: string, entries: readonly string[], primary: Family): LocalDetectors {
  const detectors: Record<Family, LocalDetector> = { IPv4: none, IPv6: none };
  const problems: DetectorProblem[] = [];
  for (const entry of entries) {
    const text = entry.trim();
    if (text === '') continue;
    const cidr = parseCIDR(text);
    if (!cidr) {
      problems.push({
        severity: 'error',
        text: `${source}: ${JSON.stringify(entry)} is not a CIDR; ignored`,
      });
    } else if (detectors[cidr.family].kind === 'none') {
      detectors[cidr.family] = { kind: 'cidr', cidr: formatCIDR(cidr) };
    }
  }
  if (detectors[primary].kind === 'none') {
    const text = `${source} has no ${primary} entry; local ${primary} traffic is not detected`;
    problems.push({ severity: 'info', text });
  }
  return { detectors, problems };
}
