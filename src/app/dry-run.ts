import { API_VERSION, type DifferenceReport } from '../inspect/api.ts';
import { differenceLines } from '../inspect/difference-text.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { count } from '../lib/count.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Family } from '../model/ip.ts';
import type { PlannedFamily } from '../proxier/planned-family.ts';
import type { SetAside } from '../proxier/set-aside.ts';
import { EXIT_CHANGES, findReplaced, type Output, type Removal } from './cleanup.ts';
import { groupsOf, leftoverText } from './leftover-text.ts';
import { planOnce } from './plan-once.ts';
import { modeContext, type Start, type StartInput } from './start.ts';

/** What a start would do to the kernel. */
interface DryRun {
  readonly mode: string;
  readonly nodeName: string;
  readonly families: readonly FamilyChanges[];
  /** Of modes that the start replaces; undefined when they cannot be looked for without CAP_NET_ADMIN. */
  readonly leftovers: Removal | undefined;
  /** Objects that cannot be (fully) programmed, and why. */
  readonly notProgrammed: readonly string[];
}

interface FamilyChanges {
  readonly family: Family;
  readonly servicePorts: number;
  readonly changes: readonly DifferenceReport[];
}

/**
 * Prints what a start would change in the kernel, and writes nothing there. Returns the exit code: 0 when a start
 * would change nothing, 2 otherwise. Throws when that cannot be found out.
 */
export async function dryRun(input: StartInput, output: Output): Promise<number> {
  const { mode, logger } = input;
  const supported = await mode.supportedFamilies(logger);
  const start = await planOnce(input, () => supported);
  try {
    const families: FamilyChanges[] = [];
    for (const planned of start.planned) families.push(await compare(planned, start));
    const leftovers = await findReplaced(mode, logger);
    if (leftovers?.hasFailed) throw new Error('cannot find out what other modes left');
    const notProgrammed = problemsOf(start.setAside);
    const result = { mode: mode.name, nodeName: start.nodeName, families, leftovers, notProgrammed };
    output.write(output.form === 'json' ? jsonOf(result) : textOf(result));
    const changes = families.reduce((sum, family) => sum + family.changes.length, 0);
    return changes + (leftovers?.removed.length ?? 0) > 0 ? EXIT_CHANGES : 0;
  } finally {
    await start.cluster.source.stop();
  }
}

async function compare(
  { family, plans, serviceCIDRs, totalEndpoints }: PlannedFamily,
  start: Start,
): Promise<FamilyChanges> {
  const inspection = await start.mode.inspect(modeContext(family, start));
  try {
    const differences = await inspection.compare({ plans, serviceCIDRs, totalEndpoints });
    const changes = differences.map((difference) => ({
      ...difference,
      family,
      service: difference.service ?? null,
    }));
    return { family, servicePorts: plans.size, changes };
  } catch (error) {
    if (hasNetAdmin(systemFiles)) throw error;
    throw new Error(`${messageOf(error)} (CAP_NET_ADMIN is missing; run it as root)`, { cause: error });
  } finally {
    await inspection.close();
  }
}

function problemsOf(setAside: SetAside): string[] {
  return [...new Set(setAside.objects().flatMap((object) => object.problems))];
}

function jsonOf({ leftovers, ...rest }: DryRun): string {
  const groups = leftovers && { removed: groupsOf(leftovers.removed), left: groupsOf(leftovers.left) };
  const report = { apiVersion: API_VERSION, kind: 'DryRun', ...rest, leftovers: groups ?? null };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function textOf({ mode, nodeName, families, leftovers, notProgrammed }: DryRun): string {
  const problems = notProgrammed.map((problem) => `  ${problem}\n`).join('');
  return [
    `${mode} mode on node ${nodeName}: what a start would change\n`,
    ...families.map(familyText),
    ...leftoverSections(leftovers),
    problems === '' ? '' : `\nNot (fully) programmed\n${problems}`,
  ].join('');
}

function familyText({ family, servicePorts, changes }: FamilyChanges): string {
  const subject = `\n${family}, ${count(servicePorts, 'service port')}: `;
  if (changes.length === 0) return `${subject}nothing to change\n`;
  const lines = differenceLines(changes).map((line) => (line === '' ? '\n' : `  ${line}\n`));
  return `${subject}${count(changes.length, 'change')}\n${lines.join('')}`;
}

function leftoverSections(leftovers: Removal | undefined): string[] {
  if (!leftovers) return ['\nWhat other modes left cannot be looked for without CAP_NET_ADMIN.\n'];
  return [
    leftoverText('Left by other modes, to be removed after the first sync', leftovers.removed),
    leftoverText('Left by other modes, and cannot be removed', leftovers.left),
  ]
    .filter((text) => text !== '')
    .map((text) => `\n${text}`);
}
