import type { BuildInfo } from '../lib/build-info.ts';
import { quote } from '../lib/go-quote.ts';
import { type Product, product } from '../lib/product.ts';
import type { FlagType } from './flag-types.ts';
import { parseBool } from './strconv.ts';

/** The Kubernetes release that this program stands in for. */
export const KUBERNETES_VERSION = 'v1.37.0';

/** The parts of `process` that the build information shows. */
export interface Runtime {
  readonly version: string;
  readonly platform: string;
  readonly arch: string;
}

const goArchitectures = new Map([
  ['x64', 'amd64'],
  ['ia32', '386'],
]);

/** Versions of Kubernetes; commit, tree state and date of this program. */
export function buildInfo(
  gitVersion = KUBERNETES_VERSION,
  runtime: Runtime = process,
  { version, commit, treeState, date }: Product = product,
): BuildInfo {
  const [major = '', minor = ''] = KUBERNETES_VERSION.slice(1).split('.');
  return {
    major,
    minor,
    gitVersion,
    gitCommit: commit,
    gitTreeState: treeState,
    buildDate: date,
    goVersion: `node-${runtime.version}`,
    compiler: 'v8',
    platform: `${runtime.platform}/${goArchitectures.get(runtime.arch) ?? runtime.arch}`,
    productVersion: version,
  };
}

/** The value of --version: what to print, and the version that the program reports. */
export interface VersionRequest {
  /** `false`, `true`, `raw`, or the version that was set. */
  readonly text: string;
  readonly gitVersion: string;
}

export const noVersionRequest: VersionRequest = { text: 'false', gitVersion: KUBERNETES_VERSION };

/** `--version`, `--version=raw`, `--version=false` or `--version=v1.37.0-mine`. */
export const versionFlag: FlagType<VersionRequest> = {
  name: 'version',
  noOptDefault: 'true',
  parse(text, previous) {
    if (text === 'raw') return { ...previous, text };
    if (text.startsWith('v')) return { text, gitVersion: requireSameRelease(text) };
    return { ...previous, text: String(parseBool(text)) };
  },
  format: (request) => request.text,
};

/** The line that --version prints; undefined when the program should run. */
export function versionText(
  { text, gitVersion }: VersionRequest,
  runtime?: Runtime,
  product?: Product,
): string | undefined {
  if (text === 'true') return `Kubernetes ${gitVersion}`;
  return text === 'raw' ? rawVersion(buildInfo(gitVersion, runtime, product)) : undefined;
}

function rawVersion(info: BuildInfo): string {
  const fields: [string, string][] = [
    ['Major', info.major],
    ['Minor', info.minor],
    ['EmulationMajor', ''],
    ['EmulationMinor', ''],
    ['MinCompatibilityMajor', ''],
    ['MinCompatibilityMinor', ''],
    ['GitVersion', info.gitVersion],
    ['GitCommit', info.gitCommit],
    ['GitTreeState', info.gitTreeState],
    ['BuildDate', info.buildDate],
    ['GoVersion', info.goVersion],
    ['Compiler', info.compiler],
    ['Platform', info.platform],
    ['Product', `kube-proxy-ts ${info.productVersion}`],
  ];
  return `version.Info{${fields.map(([name, value]) => `${name}:${quote(value)}`).join(', ')}}`;
}

const identifiers = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*';
const versionSuffix = new RegExp(`^(?:-(${identifiers}))?(?:\\+${identifiers})?$`);

function requireSameRelease(text: string): string {
  const [, release, rest = ''] = /^v([0-9]+(?:\.[0-9]+)*)(.*)$/s.exec(text.trim()) ?? [];
  if (release === undefined) throw new Error(`could not parse ${quote(text)} as version`);
  const components = release.split('.');
  if (components.length !== 3) throw new Error(`illegal version string ${quote(text)}`);
  const suffix = versionSuffix.exec(rest);
  if (!suffix) throw new Error(`could not parse pre-release/metadata (${rest}) in version ${quote(text)}`);
  const padded = [...components, ...(suffix[1]?.split('.') ?? [])].find((part) => /^0[0-9]+$/.test(part));
  if (padded !== undefined) {
    throw new Error(`illegal zero-prefixed version component ${quote(padded)} in ${quote(text)}`);
  }
  if (`v${release}` !== KUBERNETES_VERSION) {
    throw new Error(
      `version ${quote(text)} must match major/minor/patch of default version ${quote(KUBERNETES_VERSION)}`,
    );
  }
  return text;
}
