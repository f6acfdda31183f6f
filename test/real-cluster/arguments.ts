import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { batches } from './batches.ts';
import { scenarioNames } from './scenarios/names.ts';

export const modes = ['nftables', 'iptables', 'userspace', 'ipvs'] as const;
export type ClusterMode = (typeof modes)[number];
export const proxies = ['ours', 'upstream'] as const;
export type WhichProxy = (typeof proxies)[number];

/** The command line of `npm run test:cluster`. */
export interface Arguments {
  /** The folder with upstream's programs; undefined when it is not given. */
  readonly binaries: string | undefined;
  /** A folder for images, the state of the nodes and results. */
  readonly work: string;
  readonly mode: ClusterMode;
  readonly proxy: WhichProxy;
  /** Names of batches and scenarios, and `memory`. */
  readonly batches: readonly string[];
  /** A regular expression that takes the place of the focus of every batch. */
  readonly focus: string | undefined;
  /** How many tests of a batch run at a time. */
  readonly processes: number;
  /** Keeps the cluster until Ctrl-C, after the batches. */
  readonly keep: boolean;
  readonly help: boolean;
}

/** The name of the measurement of memory, among those of batches. */
export const memory = 'memory';

export const helpText = `Usage: npm run test:cluster -- --binaries DIR [--mode MODE] [--batch NAME,…] [options]

Starts a cluster of three nodes on this machine, in namespaces, from programs in DIR, deploys kube-proxy with
deploy/kustomize, runs batches of upstream's end-to-end tests, and prints a table. Needs root on Debian (x86-64).

  --binaries DIR   a folder with the unpacked archives of a Kubernetes release; without it, a list of what belongs there
  --mode MODE      ${modes.join(', ')} (default ${modes[0]})
  --batch NAME,…   tests: ${Object.keys(batches).join(', ')} (default parallel)
                   scenarios under load: ${scenarioNames.join(', ')}; or scenarios, for all of these
                   ${memory}: that of the pods of both proxies
  --focus REGEX    of a batch only the tests whose names match, for example to repeat one that failed
  --proxy WHICH    ours, or upstream, to compare with (default ours)
  --processes N    tests of a batch that run at a time (default 4; they mostly wait, two cores bear 12)
  --work DIR       images, state and results, some GB (default ~/.cache/kpt-cluster)
  --keep           keep the cluster until Ctrl-C, to look into it
  --help           this text

test/real-cluster/README.md has more.
`;

/** Relative paths begin where the user called npm. Throws an error for the user when the arguments are wrong. */
export function readArguments(argv: readonly string[]): Arguments {
  const values = parse(argv);
  const start = process.env.INIT_CWD ?? '';
  return {
    binaries: values.binaries === undefined ? undefined : resolve(start, values.binaries),
    work: visibleInNodes(
      values.work === undefined ? join(homedir(), '.cache/kpt-cluster') : resolve(start, values.work),
    ),
    mode: oneOf('--mode', modes, values.mode ?? 'nftables'),
    proxy: oneOf('--proxy', proxies, values.proxy ?? 'ours'),
    batches: batchNames(values.batch ?? ['parallel']),
    focus: values.focus,
    processes: count(values.processes ?? '4'),
    keep: values.keep ?? false,
    help: values.help ?? false,
  };
}

function parse(argv: readonly string[]) {
  const options = {
    binaries: { type: 'string' },
    work: { type: 'string' },
    mode: { type: 'string' },
    proxy: { type: 'string' },
    batch: { type: 'string', multiple: true },
    focus: { type: 'string' },
    processes: { type: 'string' },
    keep: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const;
  try {
    return parseArgs({ args: [...argv], options }).values;
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

function batchNames(values: readonly string[]): string[] {
  const all = [...Object.keys(batches), ...scenarioNames, memory];
  return values
    .flatMap((value) => value.split(','))
    .flatMap((name) => (name === 'scenarios' ? scenarioNames : [oneOf('--batch', all, name)]));
}

function oneOf<T extends string>(flag: string, known: readonly T[], value: string): T {
  const found = known.find((each) => each === value);
  if (found === undefined) throw usageError(`${flag}: ${value} is none of ${known.join(', ')}`);
  return found;
}

function count(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw usageError(`--processes: ${text} is not a number from 1 to 99`);
  return Number(text);
}

/** Nodes have folders of their own in these places. */
function visibleInNodes(path: string): string {
  const hidden = ['/run', '/var/lib', '/var/log', '/proc', '/sys', '/dev'];
  if (hidden.some((folder) => path === folder || path.startsWith(`${folder}/`)))
    throw usageError(
      `--work: ${path} is not visible in the nodes; choose a folder outside ${hidden.join(', ')}`,
    );
  return path;
}

function usageError(message: string): Error {
  return new Error(`${message}; see npm run test:cluster -- --help`);
}
