import type { Binding, Fate, Obstacle, ObstacleCause, OtherChain, Target } from '../backends/inspection.ts';
import type { ExplanationReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import { joinHostPort } from '../model/ip.ts';
import type { Paint } from './terminal.ts';
import { percentText, spanText, tableText } from './text.ts';

/**
 * The decision about a packet and its reasons, then the kernel's answer, with a warning when the two differ, then what
 * rules of other programs do.
 */
export function explanationText(report: ExplanationReport, paint: Paint): string {
  const { planned } = report;
  const reasons = planned.reasons.map((reason, i) => `  ${i + 1}. ${reason}\n`);
  return [
    packetText(report),
    `${paint('bold', headline(report))}\n`,
    ...obstacleHeadlines(report, paint),
    '\nWhy\n',
    ...reasons,
    targetsText(boundBy(report) ? (report.kernel?.fate ?? planned.fate) : planned.fate),
    `\n${kernelText(report, paint)}`,
    otherRulesText(report, paint),
  ].join('');
}

/** The fate in one sentence: for a client that is bound to an endpoint, that endpoint. */
function headline(report: ExplanationReport): string {
  const { service, fate } = report.planned;
  const bound = boundBy(report);
  if (!bound) return fateText(fate, service);
  const { endpoint, secondsLeft } = bound;
  const of = service === null ? '' : ` of ${service}`;
  const left = spanText(secondsLeft * 1000);
  return `Forwarded to ${endpoint}${of}: client affinity binds ${report.packet.source} to it for another ${left}.`;
}

/** The endpoint that the client is bound to, unless the kernel differs from the plan. */
function boundBy({ kernel, differences }: ExplanationReport): Binding | undefined {
  return differences.length === 0 ? kernel?.bound : undefined;
}

/** Whether a rule of another program certainly stops the packet. */
export function isStopped({ otherRules }: ExplanationReport): boolean {
  return otherRules?.obstacles.some(({ certainty }) => certainty === 'certain') ?? false;
}

/** Obstacles are told before the reasons: nobody should miss them. */
function obstacleHeadlines({ otherRules }: ExplanationReport, paint: Paint): string[] {
  return (otherRules?.obstacles ?? []).map((obstacle) =>
    obstacle.certainty === 'certain'
      ? `${paint('red', `WARNING: ANOTHER PROGRAM STOPS IT: ${obstacleText(obstacle)}`)}\n`
      : `${paint('yellow', `Another program may stop it: ${obstacleText(obstacle)}`)}\n`,
  );
}

function obstacleText(obstacle: Obstacle): string {
  const { table, chain, causes, causeCount, unclearRules, endpoints, certainty } = obstacle;
  const more = causeCount > causes.length ? ` and ${causeCount - causes.length} more` : '';
  const unclear =
    certainty === 'possible' && unclearRules > 0
      ? `; ${count(unclearRules, 'rule')} could not be evaluated`
      : '';
  const where = endpoints === null ? '' : `, on the way to ${endpoints.join(', ')}`;
  const causesText = causes.map((cause) => causeText(cause, chain)).join(', or ');
  return `table ${table}, chain ${chain}: ${causesText}${more}${unclear}${where}.`;
}

const causeActions = {
  drop: 'drop',
  reject: 'reject',
  unknown: 'a statement that is not understood',
} as const;

function causeText({ action, chain, handle, comment }: ObstacleCause, base: string): string {
  if (handle === null) return `policy ${action}`;
  const inChain = chain === base ? '' : ` of chain ${chain}`;
  const said = comment === null ? '' : ` (${JSON.stringify(comment)})`;
  return `${causeActions[action]} by the rule with handle ${handle}${inChain}${said}`;
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
    return `  ${chainText(one)}: ${effects[obstacle?.certainty ?? 'none']}\n`;
  });
  const heading =
    lookedAt.length === 0 ? 'No other nf_tables chain is on the way' : 'Other nf_tables chains on the way';
  const missing = notLookedAt.length === 0 ? '' : `Not looked at: ${notLookedAt.join('; ')}.\n`;
  return `\n${heading}\n${passed.join('')}${missing}`;
}

const effects = { none: 'lets it pass', possible: 'MAY STOP IT', certain: 'STOPS IT' } as const;

function chainText({ table, chain, hook, priority, policy }: OtherChain): string {
  return `table ${table}, chain ${chain} (hook ${hook}, priority ${priority}, policy ${policy})`;
}

function packetText({ packet, nodeName, mode }: ExplanationReport): string {
  const { protocol, source, destination, port, origin } = packet;
  const way = origin === 'node' ? 'sent by the node itself' : arrivalText(origin.interface);
  return `${protocol} from ${source} to ${joinHostPort(destination, port)}, ${way}; node ${nodeName}, ${mode} mode\n`;
}

function arrivalText(name: string): string {
  return name === '' ? 'arriving on an unknown interface' : `arriving on ${name}`;
}

/** The fate in one sentence. */
function fateText(fate: Fate, service: string | null = null): string {
  if (fate.action !== 'forward') return refusals[fate.action];
  const { targets, affinitySeconds } = fate;
  const [first] = targets;
  const where =
    first && targets.length === 1 ? first.endpoint : `one of ${count(targets.length, 'endpoint')}`;
  const of = service === null ? '' : ` of ${service}`;
  const sticky =
    affinitySeconds > 0 ? `, and for ${spanText(affinitySeconds * 1000)} always the same one` : '';
  return `Forwarded to ${where}${of}${sticky}.`;
}

const refusals = {
  drop: 'Dropped: the sender gets no answer.',
  reject: 'Rejected: the sender gets an error at once.',
  pass: 'Ignored: the packet is routed as if there were no proxy.',
} as const;

function targetsText(fate: Fate): string {
  if (fate.action !== 'forward') return '';
  const rows = fate.targets.map((target) => [
    target.endpoint,
    percentText(target.probability),
    seenText(target),
  ]);
  const table = tableText(['ENDPOINT', 'CHANCE', 'SEES AS SOURCE'], rows);
  return `\n${table.replace(/^/gm, '  ').trimEnd()}\n`;
}

function seenText({ masquerade }: Target): string {
  return masquerade ? 'an address of the node' : 'the address of the client';
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
    targetsText(kernel.fate),
  ].join('');
}
