import type { DifferenceReport } from '../inspect/api.ts';
import { differenceLines } from '../inspect/difference-text.ts';
import { count } from '../lib/count.ts';
import type { PlannedFamily } from '../proxier/planned-family.ts';
import type { SetAside } from '../proxier/set-aside.ts';
import { planOnce } from './plan-once.ts';
import { modeContext, type Start, type StartInput } from './start.ts';

/** A start would change something in the kernel. */
const EXIT_CHANGES = 2;

/**
 * Prints what a start would change in the kernel, and writes nothing there. Returns the exit code: 0 when a start
 * would change nothing, 2 otherwise. Throws when that cannot be found out.
 */
export async function dryRun(input: StartInput, write: (text: string) => void): Promise<number> {
  const { mode, logger } = input;
  const supported = await mode.supportedFamilies(logger);
  const start = await planOnce(input, () => supported);
  try {
    write(`${mode.name} mode on node ${start.nodeName}: what a start would change\n`);
    let changes = 0;
    for (const family of start.planned) {
      const differences = await compare(family, start);
      changes += differences.length;
      write(familyText(family, differences));
    }
    write(setAsideText(start.setAside));
    return changes > 0 ? EXIT_CHANGES : 0;
  } finally {
    await start.cluster.source.stop();
  }
}

async function compare(
  { family, plans, serviceCIDRs, totalEndpoints }: PlannedFamily,
  start: Start,
): Promise<DifferenceReport[]> {
  const inspection = await start.mode.inspect(modeContext(family, start));
  try {
    const differences = await inspection.compare({ plans, serviceCIDRs, totalEndpoints });
    return differences.map((difference) => ({ ...difference, family, service: difference.service ?? null }));
  } finally {
    await inspection.close();
  }
}

function familyText({ family, plans }: PlannedFamily, differences: readonly DifferenceReport[]): string {
  const subject = `\n${family}, ${count(plans.size, 'service port')}: `;
  if (differences.length === 0) return `${subject}nothing to change\n`;
  const lines = differenceLines(differences).map((line) => (line === '' ? '\n' : `  ${line}\n`));
  return `${subject}${count(differences.length, 'change')}\n${lines.join('')}`;
}

function setAsideText(setAside: SetAside): string {
  const problems = setAside.objects().flatMap((object) => object.problems);
  if (problems.length === 0) return '';
  const lines = [...new Set(problems)].map((problem) => `  ${problem}\n`);
  return `\nNot (fully) programmed\n${lines.join('')}`;
}
