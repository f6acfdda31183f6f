import type {
  FamilyStatus,
  FastPathReport,
  ProblemReport,
  SetAsideReport,
  StatusReport,
} from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import { productText } from '../lib/product.ts';
import { sourcesText } from './status-sources.ts';
import { type Column, itemsText, type Layout } from './table.ts';
import type { Paint } from './terminal.ts';
import { agoText, spanText } from './text.ts';

/** One line for the whole proxy, its problems, a table of the families, the sources, objects that are not programmed. */
export function statusText(report: StatusReport, paint: Paint, layout?: Layout): string {
  const { mode, nodeName, version, product, startTime, time } = report;
  const name = `kube-proxy ${version}${product ? ` (${productText(product)})` : ''}`;
  const up = spanText(Date.parse(time) - Date.parse(startTime));
  const lines = [
    `${name} in ${mode} mode on node ${nodeName}, up ${up}: ${healthText(report, paint)}\n`,
    ...report.problems.map((problem) => problemLine(problem, time, paint)),
    '\n',
    itemsText(familyColumns(time, paint), report.families, layout),
    ...report.families.flatMap((family) => familyNotes(family, time, paint)),
    sourcesText(report, paint, layout),
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

function familyColumns(now: string, paint: Paint): readonly Column<FamilyStatus>[] {
  const warned = (n: number) => (n > 0 ? paint('yellow', String(n)) : '0');
  return [
    { heading: 'FAMILY', cell: ({ family }) => family },
    { heading: 'NODE IP', cell: ({ nodeIP }) => nodeIP },
    { heading: 'SERVICE PORTS', cell: ({ servicePorts }) => String(servicePorts) },
    { heading: 'ENDPOINTS', cell: ({ endpoints }) => String(endpoints), leaveOut: 6 },
    { heading: 'LAST SYNC', cell: ({ lastSync }) => (lastSync ? agoText(lastSync.time, now) : 'never') },
    {
      heading: 'TOOK',
      cell: ({ lastSync }) => (lastSync ? spanText(lastSync.seconds * 1000) : '-'),
      leaveOut: 3,
    },
    { heading: 'KIND', cell: ({ lastSync }) => lastSync?.kind ?? '-', leaveOut: 1 },
    { heading: 'CHANGED', cell: ({ lastSync }) => String(lastSync?.changedServicePorts ?? '-'), leaveOut: 2 },
    { heading: 'SYNCS', cell: ({ syncs }) => String(syncs), leaveOut: 4 },
    { heading: 'FAILED', cell: ({ failures }) => warned(failures) },
    { heading: 'REPAIRS', cell: ({ repairs }) => warned(repairs) },
    {
      heading: 'PENDING',
      cell: ({ pending }) => String(pending.services + pending.endpointSlices),
      leaveOut: 5,
    },
  ];
}

function familyNotes(family: FamilyStatus, now: string, paint: Paint): string[] {
  const notes: string[] = [];
  const { lastFailure, lastSync, lastRepair, lastRepairCause, serviceCIDRs } = family;
  if (serviceCIDRs.length > 0) notes.push(`service CIDRs: ${serviceCIDRs.join(', ')}`);
  if (family.fastPath) notes.push(fastPathText(family.fastPath, paint));
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

/** Every pod on a bridge has a device; the JSON names them all. */
const maxNamedDevices = 10;

function fastPathText(
  { scope, after, inUse, reason, counting, ...rest }: FastPathReport,
  paint: Paint,
): string {
  if (!inUse) return paint('yellow', `no fast path: ${reason}`);
  const whose = scope === 'services' ? 'connections of Services' : 'all forwarded connections';
  const where = count(rest.devices.length, 'device');
  const named = rest.leftOut.slice(0, maxNamedDevices).map(({ device, reason: why }) => `${device} (${why})`);
  const more = rest.leftOut.length - named.length;
  const leftOut = named.join(', ') + (more > 0 ? ` and ${more} more` : '');
  const text = `fast path for ${whose} after ${count(after, 'packet')}, on ${where}${leftOut && `; left out: ${leftOut}`}`;
  if (counting) return text;
  return `${text}\n${paint('yellow', 'nf_conntrack_acct is 0: no new connection gets to the fast path')}`;
}

function setAsideNotes({ setAside }: StatusReport, paint: Paint): string[] {
  // A slice may legally contain what no proxy can use: nothing is wrong with this node.
  const [slices, others] = partition(setAside, ({ object }) => object.startsWith('EndpointSlice '));
  return [
    ...noteOf(others, (n) => paint('yellow', `${count(n, 'object')} not (fully) programmed:`)),
    ...noteOf(slices, (n) => `${count(n, 'EndpointSlice')} with parts that no proxy can use:`),
  ];
}

function noteOf(objects: readonly SetAsideReport[], heading: (n: number) => string): string[] {
  if (objects.length === 0) return [];
  const lines = objects.flatMap(({ family, reason, problems }) =>
    problems.map((problem) => `  ${family}, ${reason}: ${problem}\n`),
  );
  return [`\n${heading(objects.length)}\n`, ...lines];
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** The part of a report whose changes are worth showing: not the clock, not syncs and watches that go well. */
export function lasting({ time: _time, families, sources, ...rest }: StatusReport): object {
  return {
    ...rest,
    sources: { ...sources, watches: [] },
    families: families.map(({ syncs: _syncs, lastSync: _lastSync, pending: _pending, ...family }) => family),
  };
}
