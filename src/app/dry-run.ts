import type { Mode } from '../backends/mode.ts';
import type { Options } from '../cli/options.ts';
import type { DifferenceReport } from '../inspect/api.ts';
import { differenceLines } from '../inspect/difference-text.ts';
import { silentRestMetrics } from '../kube/rest-metrics.ts';
import { systemClock } from '../lib/clock.ts';
import { count } from '../lib/count.ts';
import type { Logger } from '../obs/log.ts';
import type { PlannedFamily } from '../proxier/planned-family.ts';
import type { SetAside } from '../proxier/set-aside.ts';
import type { Completed } from './complete.ts';
import { meetNode } from './known-node.ts';
import { loadPlans } from './load-plans.ts';
import { modeContext } from './mode-context.ts';
import { loadMode } from './modes.ts';
import { type NodeSetup, setUpNode } from './node-setup.ts';
import { withPatience } from './patience.ts';

/** The API server is given this long to answer; it is then given some time more to know the node. */
const patienceMs = 60_000;
/** Something would be written. */
const EXIT_CHANGES = 2;

/**
 * Prints what a start would change in the kernel, and writes nothing. Gives the exit code: 0 when there is nothing to
 * change, 2 when there is; throws when that cannot be told.
 */
export async function dryRun(
  options: Options,
  completed: Completed,
  logger: Logger,
  write: (text: string) => void,
): Promise<number> {
  const { config } = completed;
  const mode = await loadMode(config.mode);
  const meeting = meetNode(options, completed, silentRestMetrics, logger);
  const known = await withPatience(meeting, patienceMs, systemClock, () => 'an answer of the API server');
  try {
    const setup = setUpNode(
      config,
      known.start,
      known.addresses,
      await mode.supportedFamilies(logger),
      logger,
    );
    const { families, setAside } = await loadPlans(known, completed, setup, logger);
    write(`${config.mode} mode on node ${known.nodeName}: what a start would change\n`);
    let changes = 0;
    for (const family of families) {
      const differences = await compare(mode, family, completed, setup, logger);
      changes += differences.length;
      write(familyText(family, differences));
    }
    write(setAsideText(setAside));
    return changes > 0 ? EXIT_CHANGES : 0;
  } finally {
    await known.cluster.source.stop();
  }
}

async function compare(
  mode: Mode,
  { family, plans, serviceCIDRs, totalEndpoints }: PlannedFamily,
  completed: Completed,
  setup: NodeSetup,
  logger: Logger,
): Promise<DifferenceReport[]> {
  const inspection = await mode.inspect(modeContext(family, completed, setup, logger));
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
  return `\nNot, or in part not, programmed\n${lines.join('')}`;
}
