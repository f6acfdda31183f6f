import type { FamilyStatus, StatusReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import type { Paint } from './terminal.ts';
import { agoText, spanText, tableText } from './text.ts';

/** The proxy is not known to be unhealthy and has listed its objects. */
export function isWell({ healthy, families }: StatusReport): boolean {
  return healthy !== false && families.every(({ initialised }) => initialised);
}

/** One line for the whole proxy, a table of the families, then what needs attention. */
export function statusText(report: StatusReport, paint: Paint): string {
  const { mode, nodeName, version, startTime, time } = report;
  const up = spanText(Date.parse(time) - Date.parse(startTime));
  const lines = [
    `kube-proxy ${version} in ${mode} mode on node ${nodeName}, up ${up}: ${healthText(report, paint)}\n`,
    '\n',
    familyTable(report, paint),
    ...report.families.flatMap((family) => familyNotes(family, time, paint)),
    ...setAsideNotes(report, paint),
  ];
  return lines.join('');
}

function healthText(report: StatusReport, paint: Paint): string {
  if (!report.families.every(({ initialised }) => initialised)) {
    return paint('yellow', 'starting: Services and EndpointSlices have not been listed yet');
  }
  if (report.healthy === null) return 'health is unknown, because the health server is switched off';
  return report.healthy ? paint('green', 'healthy') : paint('red', 'UNHEALTHY: syncs are overdue');
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
  const { lastFailure, lastSync, lastRepair, serviceCIDRs } = family;
  if (serviceCIDRs.length > 0) notes.push(`service CIDRs: ${serviceCIDRs.join(', ')}`);
  if (lastRepair !== null) {
    notes.push(`last repair ${agoText(lastRepair, now)}: another program had changed our rules`);
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
