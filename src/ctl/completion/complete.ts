import { parseFlags } from '../../cli/flag-set.ts';
import { flowStates } from '../../inspect/traffic-api.ts';
import { proxyModes } from '../../model/proxy-mode.ts';
import { servicePortName } from '../../model/service-port.ts';
import { allCommands } from '../all-commands.ts';
import { type AnyCommand, type Completed, flagsOf, isLocal } from '../command.ts';
import {
  allFlags,
  type CtlFlag,
  type CtlOptions,
  commonFlags,
  defaultOptions,
  forms,
  groupings,
  protocols,
  sortKeys,
  versionFlag,
} from '../flags.ts';
import { proxyNodes } from '../node/node-source.ts';
import { samePatience } from '../patience.ts';
import { runningProxy } from '../running-proxy.ts';
import { namespaceOf } from '../selector.ts';
import { EXIT_OK, type ExitCode, type Terminal } from '../terminal.ts';
import { shells } from './scripts.ts';

/** The hidden command that completion scripts call, with the words up to the cursor. */
export const COMPLETE = '__complete';
/** Longer than that, nobody waits for a completion. */
const TIMEOUT_MS = 3_000;

/** A word that fits, and its description or ''. */
type Candidate = readonly [word: string, about: string];
type Service = {
  readonly namespace: string;
  readonly name: string;
  readonly portName: string;
  readonly port: number;
};

/** What words can be completed to. Each answer is empty when there is none in time. */
export interface AskedForWords {
  /** Service ports of the proxy that runs. */
  services(options: CtlOptions, namespace: string | undefined): Promise<readonly Service[]>;
  /** Nodes with a pod of kube-proxy. */
  nodes(options: CtlOptions): Promise<readonly string[]>;
}

/** Prints the words that fit at the cursor, each with a tab and its description; or `:files` for any file. */
export async function complete(words: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const ask: AskedForWords = {
    services: async (options, namespace) => {
      const source = await runningProxy(options, terminal.env, samePatience(TIMEOUT_MS)).catch(
        () => undefined,
      );
      try {
        return (await source?.services(namespace === undefined ? {} : { namespace }))?.items ?? [];
      } catch {
        return [];
      } finally {
        await source?.close();
      }
    },
    nodes: (options) => proxyNodes(options, terminal.env, TIMEOUT_MS).catch(() => []),
  };
  for (const line of await completionLines(words, ask)) terminal.stdout.write(`${line}\n`);
  return EXIT_OK;
}

/** The last word is the one to complete. */
export async function completionLines(words: readonly string[], ask: AskedForWords): Promise<string[]> {
  const current = words.at(-1) ?? '';
  const line = readLine(words.slice(0, -1));
  const [, flagPart = '', name = ''] = /^(--([^=]+)=)/.exec(current) ?? [];
  const flag = line.waiting ?? allFlags.find((known) => known.name === name);
  if (flag) {
    const values = await valuesOf(flag, line, ask);
    return values === 'files'
      ? [':files']
      : fitting(
          values.map(([word, about]) => [flagPart + word, about]),
          current,
        );
  }
  if (current.startsWith('-')) return fitting(flagCandidates(line.command), current);
  if (!line.command)
    return fitting(
      allCommands.map(({ name: word, summary }) => [word, summary]),
      current,
    );
  const kind = line.command.completes[line.args.length];
  return kind === undefined ? [] : fitting(await argumentCandidates(kind, line, current, ask), current);
}

/** The command line before the cursor. */
interface Line {
  readonly command: AnyCommand | undefined;
  readonly args: readonly string[];
  readonly options: CtlOptions;
  /** The flag whose value comes next. */
  readonly waiting: CtlFlag | undefined;
}

function readLine(words: readonly string[]): Line {
  const last = words.at(-1) ?? '';
  const waiting = allFlags.find(
    ({ name, shorthand, noOptDefault }) =>
      noOptDefault === undefined && (last === `--${name}` || last === `-${shorthand}`),
  );
  const options: CtlOptions = { ...defaultOptions };
  let positionals: readonly string[] = [];
  try {
    const parsed = parseFlags(allFlags, waiting ? words.slice(0, -1) : words);
    parsed.writeTo(options);
    positionals = parsed.positionals;
  } catch {
    // A flag is wrong. The command will say so; until then, complete as without flags.
    positionals = words.filter((word) => !word.startsWith('-'));
  }
  const [name, ...args] = positionals;
  return { command: allCommands.find((known) => known.name === name), args, options, waiting };
}

function flagCandidates(command: AnyCommand | undefined): Candidate[] {
  const flags = command ? flagsOf(command) : [...commonFlags, versionFlag];
  return flags.map(({ name, help }) => [`--${name}`, help]);
}

async function valuesOf(
  flag: CtlFlag,
  { command, options }: Line,
  ask: AskedForWords,
): Promise<readonly Candidate[] | 'files'> {
  const plain = (words: readonly string[]): Candidate[] => words.map((word) => [word, '']);
  switch (flag.name) {
    case 'output': {
      const hasNames = command === undefined || (!isLocal(command) && command.hasNames);
      return plain(forms.filter((form) => form !== 'name' || hasNames));
    }
    case 'namespace':
      return plain([...new Set((await ask.services(options, undefined)).map(({ namespace }) => namespace))]);
    case 'on-node':
      return plain(await ask.nodes(options));
    case 'by':
      return plain(groupings);
    case 'sort':
      return plain(sortKeys);
    case 'protocol':
      return plain(protocols);
    case 'state':
      return plain(flowStates);
    case 'proxy-mode':
      return plain(proxyModes);
    case 'config':
    case 'manifests':
    case 'kubeconfig':
    case 'bundle':
    case 'file':
      return 'files';
    default:
      return [];
  }
}

async function argumentCandidates(
  kind: Completed,
  { options }: Line,
  current: string,
  ask: AskedForWords,
): Promise<readonly Candidate[]> {
  switch (kind) {
    case 'command':
      return allCommands.map(({ name, summary }) => [name, summary]);
    case 'shell':
      return shells.map((shell) => [shell, '']);
    case 'source':
      return [['node', 'this node itself']];
    case 'service':
      return serviceCandidates(options, current, ask);
  }
}

/** Services as NAMESPACE/NAME, or as NAME with -n and for a word that no namespace begins with; ports after a colon. */
async function serviceCandidates(
  options: CtlOptions,
  current: string,
  ask: AskedForWords,
): Promise<Candidate[]> {
  const slash = current.indexOf('/');
  const { namespace = slash > 0 ? current.slice(0, slash) : undefined } = namespaceOf(options);
  const found = await ask.services(options, namespace);
  const names = found.flatMap((port) => {
    if (!current.includes(':')) return `${port.namespace}/${port.name}`;
    const numbered = `${port.namespace}/${port.name}:${port.port}`;
    return port.portName === '' ? numbered : [servicePortName(port), numbered];
  });
  const bare = names.map((name) => name.slice(name.indexOf('/') + 1));
  const isBare = options.namespace !== '' || (slash < 0 && !names.some((name) => name.startsWith(current)));
  return (isBare && slash < 0 ? bare : names).map((name) => [name, '']);
}

function fitting(candidates: readonly Candidate[], current: string): string[] {
  const lines = candidates
    .filter(([word]) => word.startsWith(current))
    .map(([word, about]) => (about === '' ? word : `${word}\t${about}`));
  return [...new Set(lines)].sort();
}
