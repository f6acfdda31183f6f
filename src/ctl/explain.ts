import type { Fate, Target } from '../backends/inspection.ts';
import type { ExplanationReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import { joinHostPort } from '../model/ip.ts';
import { tableText } from './table.ts';
import type { Paint } from './terminal.ts';
import { percentText, spanText } from './words.ts';

/** What was decided about a packet and why, then what the kernel says, and loudly if that is something else. */
export function explanationText(report: ExplanationReport, paint: Paint): string {
  const { planned } = report;
  const reasons = planned.reasons.map((reason, i) => `  ${i + 1}. ${reason}\n`);
  return [
    packetText(report),
    `${paint('bold', fateText(planned.fate, planned.service))}\n`,
    '\nWhy\n',
    ...reasons,
    targetsText(planned.fate),
    `\n${kernelText(report, paint)}`,
  ].join('');
}

function packetText({ packet, nodeName, mode }: ExplanationReport): string {
  const { protocol, source, destination, port, origin } = packet;
  const way = origin === 'node' ? 'sent by the node itself' : arrivalText(origin.interface);
  return `${protocol} from ${source} to ${joinHostPort(destination, port)}, ${way}; node ${nodeName}, ${mode} mode\n`;
}

function arrivalText(name: string): string {
  return name === '' ? 'arriving by an interface that is not known' : `arriving by ${name}`;
}

/** The fate in one sentence. */
export function fateText(fate: Fate, service: string | null = null): string {
  if (fate.action !== 'forward') return refusals[fate.action];
  const { targets, affinitySeconds } = fate;
  const [first] = targets;
  const where =
    first && targets.length === 1 ? first.endpoint : `one of ${count(targets.length, 'endpoint')}`;
  const of = service === null ? '' : ` of ${service}`;
  const sticky =
    affinitySeconds > 0 ? `, and for ${spanText(affinitySeconds * 1000)} to the same for this client` : '';
  return `Forwarded to ${where}${of}${sticky}.`;
}

const refusals = {
  drop: 'Dropped: the sender hears nothing.',
  reject: 'Rejected: the sender is told at once.',
  pass: 'Left alone: it takes the way that it would take without a proxy.',
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
    return `${paint('yellow', 'What the kernel does is not known')}: ${kernelUnknown ?? 'no reason is given'}\n`;
  const evidence = kernel.evidence.map((line) => `  ${line}\n`).join('');
  if (differences.length === 0) return `${paint('green', 'The kernel says the same')}\n${evidence}`;
  const complaints = differences.map((difference) => `  ${paint('red', `! ${difference}`)}\n`).join('');
  return [
    `${paint('red', 'WARNING: THE KERNEL DOES SOMETHING ELSE')}\n${complaints}`,
    `\nThe kernel says: ${fateText(kernel.fate)}\n${evidence}`,
    targetsText(kernel.fate),
  ].join('');
}
