import { chainOf } from './chain-diff.ts';
import { type CompiledService, ownChains } from './compile.ts';
import type { CompiledServices } from './compiled-services.ts';
import { declarations } from './declarations.ts';
import { natHead } from './fixed-rules.ts';
import type { IptablesSettings } from './settings.ts';
import { RestoreError, type Tables } from './tables.ts';

/**
 * Holds, while a trial lasts, what service ports want in shared chains; nothing jumps to it. By its name it is removed
 * as a stale chain should the program not get to it.
 */
const trialChain = 'KUBE-SVC-TRIAL';

/** Restores that one search may take. Few service ports are ever refused, and finding one takes two dozen. */
const maxTrials = 200;

/**
 * Finds the service ports that caused a refusal, with the reasons; none when no service port did. Tries the suspect
 * alone first: not every version of iptables-restore counts lines correctly.
 */
export async function findCulprits(
  services: CompiledServices,
  suspect: string | undefined,
  settings: IptablesSettings,
  tables: Pick<Tables, 'restore'>,
): Promise<Map<string, RestoreError>> {
  const suspected = suspect === undefined ? undefined : services.get(suspect);
  try {
    const error = suspected && (await refusalOf([suspected], settings, tables));
    return error ? new Map([[suspected.key, error]]) : await searchAll(services, settings, tables);
  } finally {
    await endTrials(tables);
  }
}

/**
 * Finds the service ports that the kernel refuses, when it does not say which, by giving it some of them at a time:
 * their own chains as they are wanted, and their lines in shared chains in a chain that nothing uses. So traffic to
 * the others is never interrupted. When there are too many to find them all, the rest is taken in groups.
 */
async function searchAll(
  services: Iterable<CompiledService>,
  settings: IptablesSettings,
  tables: Pick<Tables, 'restore'>,
): Promise<Map<string, RestoreError>> {
  const refused = new Map<string, RestoreError>();
  const groups = [[...services]];
  for (const group of groups) {
    const error = await refusalOf(group, settings, tables);
    if (!error) continue;
    // Every group takes one trial.
    if (group.length <= 1 || groups.length + 2 > maxTrials) {
      for (const { key } of group) refused.set(key, error);
      continue;
    }
    const half = Math.ceil(group.length / 2);
    groups.push(group.slice(0, half), group.slice(half));
  }
  return refused;
}

/** Why these service ports cannot be written; undefined when they can. */
async function refusalOf(
  services: readonly CompiledService[],
  settings: IptablesSettings,
  tables: Pick<Tables, 'restore'>,
): Promise<RestoreError | undefined> {
  try {
    await tables.restore(trialInput(services, settings));
    return undefined;
  } catch (error) {
    if (error instanceof RestoreError) return error;
    throw error;
  }
}

function* trialInput(services: readonly CompiledService[], settings: IptablesSettings): Generator<string> {
  yield `*filter\n:${trialChain} - [0:0]\n`;
  for (const { dispatch } of services) yield textOf(dispatch.filter.map(intoTrialChain));
  yield `COMMIT\n*nat\n:KUBE-MARK-MASQ - [0:0]\n:${trialChain} - [0:0]\n`;
  yield textOf(natHead(settings).filter((rule) => chainOf(rule) === 'KUBE-MARK-MASQ'));
  const own = services.map((service) => ownChains(service, settings));
  for (const lines of declarations(own.flatMap(({ declared }) => declared))) yield textOf(lines);
  for (const { rules } of own) yield textOf(rules());
  for (const { dispatch } of services) yield textOf(dispatch.nat.map(intoTrialChain));
  yield 'COMMIT\n';
}

/** Removes the trial chain. */
async function endTrials(tables: Pick<Tables, 'restore'>): Promise<void> {
  const remove = `:${trialChain} - [0:0]\n-X ${trialChain}\nCOMMIT\n`;
  await tables.restore([`*filter\n${remove}`, `*nat\n${remove}`]);
}

function intoTrialChain(rule: string): string {
  return `-A ${trialChain}${rule.slice(rule.indexOf(' ', 3))}`;
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
