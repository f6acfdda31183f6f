import type { FamilyStatus, ProblemReport, StatusReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import { productText } from '../lib/product.ts';
import { sourcesText } from './status-sources.ts';
import type { Paint } from './terminal.ts';
import { agoText, spanText, tableText } from './text.ts';

/** One line for the whole proxy, its problems, a table of the families, the sources, objects that are not programmed. */
export function statusText(report: StatusReport, paint: Paint): string {
  const { mode, nodeName, version, product, startTime, time } = report;
  const name = `kube-proxy ${version}${product ? ` (${productText(product)})` : ''}`;
  const up = spanText(Date.parse(time) - Date.parse(startTime));
  const lines = [
    `${name} in ${mode} mode on node ${nodeName}, up ${up}: ${healthText(report, paint)}\n`,
    ...report.problems.map((problem) => problemLine(problem, time, paint)),
    '\n',
    familyTable(report, paint),
    ...report.families.flatMap((family) => familyNotes(family, time, paint)),
    sourcesText(report, paint),
    ...setAsideNotes(report, paint),
  ];
  return lines.join('');
}

const styles = { healthy: 'green', starting: 'yellow', degraded: 'yellow', unhealthy: 'red' } as const;

function healthText({ state }: StatusReport, paint: Paint): string {
  return paint(styles[state], state === 'unhealthy' ? 'UNHEALTHY' : state);
}

function problemLine({ family, since, outage, text }: ProblemReport, now: string, paint: Paint): string {
  const line = `${family === null ? '' : `${family}: `}${text}`;
  const duration = since === null ? '' : ` (for ${spanText(Date.parse(now) - Date.parse(since))})`;
  return `  ! ${paint(outage ? 'red' : 'yellow', line)}${duration}\n`;
}

function familyTable({ families, time }: StatusReport, paint: Paint): string {
  const headings = [
    'FAMILY',
    'NODE IP',
    'SERVICE PORTS',
    'ENDPOINTS',
    'LAST SYNC',
    'TOOK',
    'KIND',
    'CHANGED',
    'SYNCS',
    'FAILED',
    'REPAIRS',
    'PENDING',
  ];
  const rows = families.map((family) => {
    const { lastSync, pending } = family;
    return [
      family.family,
      family.nodeIP,
      String(family.servicePorts),
      String(family.endpoints),
      lastSync ? agoText(lastSync.time, time) : 'never',
      lastSync ? spanText(lastSync.seconds * 1000) : '-',
      lastSync?.kind ?? '-',
      String(lastSync?.changedServicePorts ?? '-'),
      String(family.syncs),
      family.failures > 0 ? paint('yellow', String(family.failures)) : '0',
      family.repairs > 0 ? paint('yellow', String(family.repairs)) : '0',
      String(pending.services + pending.endpointSlices),
    ];
  });
  return tableText(headings, rows);
}

function familyNotes(family: FamilyStatus, now: string, paint: Paint): string[] {
  const notes: string[] = [];
  const { lastFailure, lastSync, lastRepair, lastRepairCause, serviceCIDRs } = family;
  if (serviceCIDRs.length > 0) notes.push(`service CIDRs: ${serviceCIDRs.join(', ')}`);
  if (lastRepair !== null && lastRepairCause) {
    const { by, changes } = lastRepairCause;
    notes.push(`last repair ${agoText(lastRepair, now)}: ${by} had changed our rules (${changes})`);
  }
  if (lastFailure !== null) {
    const isOver = lastSync !== null && lastSync.time >= lastFailure.time;
    const text = `last failure ${agoText(lastFailure.time, now)}${isOver ? ', succeeded since' : ''}: ${lastFailure.message}`;
    notes.push(isOver ? text : paint('red', text));
  }
  return notes.map((note) => `\n${family.family}: ${note}\n`);
}

function setAsideNotes({ setAside }: StatusReport, paint: Paint): string[] {
  if (setAside.length === 0) return [];
  const heading = `${count(setAside.length, 'object')} not (fully) programmed:`;
  const lines = setAside.flatMap(({ family, reason, problems }) =>
    problems.map((problem) => `  ${family}, ${reason}: ${problem}\n`),
  );
  return [`\n${paint('yellow', heading)}\n`, ...lines];
}
