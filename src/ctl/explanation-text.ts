import type { Fate, Target } from '../backends/inspection.ts';
import type { ExplanationReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import { joinHostPort } from '../model/ip.ts';
import type { Paint } from './terminal.ts';
import { percentText, spanText, tableText } from './text.ts';

/** The decision about a packet and its reasons, then the kernel's answer, with a warning when the two differ. */
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
  if (differences.length === 0) return `${paint('green', 'The kernel agrees')}\n${evidence}`;
  const complaints = differences.map((difference) => `  ${paint('red', `! ${difference}`)}\n`).join('');
  return [
    `${paint('red', 'WARNING: THE KERNEL DISAGREES')}\n${complaints}`,
    `\nThe kernel says: ${fateText(kernel.fate)}\n${evidence}`,
    targetsText(kernel.fate),
  ].join('');
}
