import type { Fate, Target } from '../backends/inspection.ts';
import type { ExplanationReport } from '../inspect/api.ts';
import {
  boundBy,
  chainEffects,
  chainText,
  fateText,
  headline,
  laterPacketsText,
  obstacleText,
  packetText,
  seenText,
} from '../inspect/explanation-words.ts';
import { podText } from '../inspect/pod-text.ts';
import type { Paint } from './terminal.ts';
import { percentText, tableText } from './text.ts';

/**
 * The decision about a packet and its reasons, then the kernel's answer, with a warning when the two differ, then what
 * rules of other programs do.
 */
export function explanationText(report: ExplanationReport, paint: Paint): string {
  const { planned } = report;
  const reasons = planned.reasons.map((reason, i) => `  ${i + 1}. ${reason}\n`);
  return [
    `${packetText(report)}\n`,
    `${paint('bold', headline(report))}\n`,
    ...obstacleHeadlines(report, paint),
    '\nWhy\n',
    ...reasons,
    targetsText(boundBy(report) ? (report.kernel?.fate ?? planned.fate) : planned.fate, report),
    `\n${kernelText(report, paint)}`,
    fastPathText(report),
    otherRulesText(report, paint),
  ].join('');
}

function fastPathText(report: ExplanationReport): string {
  const text = laterPacketsText(report);
  return text === undefined ? '' : `${text}\n`;
}

/** Obstacles are told before the reasons: nobody should miss them. */
function obstacleHeadlines({ otherRules }: ExplanationReport, paint: Paint): string[] {
  return (otherRules?.obstacles ?? []).map((obstacle) =>
    obstacle.certainty === 'certain'
      ? `${paint('red', `WARNING: ANOTHER PROGRAM STOPS IT: ${obstacleText(obstacle)}`)}\n`
      : `${paint('yellow', `Another program may stop it: ${obstacleText(obstacle)}`)}\n`,
  );
}

function otherRulesText({ otherRules, otherRulesUnknown, kernel }: ExplanationReport, paint: Paint): string {
  if (!otherRules) {
    if (!kernel) return '';
    const unknown = paint('yellow', 'Rules of other programs were not looked at');
    return `\n${unknown}: ${otherRulesUnknown ?? 'no reason is given'}\n`;
  }
  const { lookedAt, obstacles, notLookedAt } = otherRules;
  const isEnded = kernel?.fate.action === 'drop' || kernel?.fate.action === 'reject';
  if (isEnded) return '';
  const passed = lookedAt.map((one) => {
    const obstacle = obstacles.find(({ table, chain }) => table === one.table && chain === one.chain);
    return `  ${chainText(one)}: ${chainEffects[obstacle?.certainty ?? 'none']}\n`;
  });
  const heading =
    lookedAt.length === 0 ? 'No other nf_tables chain is on the way' : 'Other nf_tables chains on the way';
  const missing = notLookedAt.length === 0 ? '' : `Not looked at: ${notLookedAt.join('; ')}.\n`;
  return `\n${heading}\n${passed.join('')}${missing}`;
}

/** The endpoints of a fate. Pods and zones have columns when at least one is known. */
function targetsText(fate: Fate, { planned, placements = {} }: ExplanationReport): string {
  if (fate.action !== 'forward') return '';
  const service = planned.service ?? '';
  const columns = [
    ['ENDPOINT', ({ endpoint }: Target) => endpoint],
    ['POD', ({ endpoint }: Target) => podText({ service, ...placements[endpoint] })],
    ['ZONE', ({ endpoint }: Target) => placements[endpoint]?.zone ?? '-'],
    ['CHANCE', ({ probability }: Target) => percentText(probability)],
    ['SEES AS SOURCE', seenText],
  ] as const;
  const shown = columns.filter(([, cell]) => fate.targets.some((target) => cell(target) !== '-'));
  const rows = fate.targets.map((target) => shown.map(([, cell]) => cell(target)));
  const table = tableText(
    shown.map(([heading]) => heading),
    rows,
  );
  return `\n${table.replace(/^/gm, '  ').trimEnd()}\n`;
}

function kernelText(report: ExplanationReport, paint: Paint): string {
  const { kernel, kernelUnknown, differences } = report;
  if (!kernel)
    return `${paint('yellow', 'The answer of the kernel is unknown')}: ${kernelUnknown ?? 'no reason is given'}\n`;
  const evidence = kernel.evidence.map((line) => `  ${line}\n`).join('');
  const lookedAt = `Looked at: ${kernel.lookedAt}.\n`;
  if (differences.length === 0) return `${paint('green', 'The kernel agrees')}\n${evidence}${lookedAt}`;
  const complaints = differences.map((difference) => `  ${paint('red', `! ${difference}`)}\n`).join('');
  return [
    `${paint('red', 'WARNING: THE KERNEL DISAGREES')}\n${complaints}`,
    `\nThe kernel says: ${fateText(kernel.fate)}\n${evidence}${lookedAt}`,
    targetsText(kernel.fate, report),
  ].join('');
}
