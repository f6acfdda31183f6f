import type { ProblemReport, ServiceReport, SetAsideReport, StatusReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import type { Rate } from './rates.ts';
import { type ServiceRow, type ServiceState, unusedEndpoints } from './service-row.ts';

/** One thing that an operator should look at. */
export interface AttentionItem {
  /** What it is about; null when it is the whole node. */
  readonly service: { readonly namespace: string; readonly name: string; readonly label: string } | null;
  readonly text: string;
}

/** Things of one kind, the worst kinds first. */
export interface AttentionGroup {
  readonly severity: 'outage' | 'warning' | 'note';
  readonly title: string;
  readonly count: number;
  /** The first few. */
  readonly items: readonly AttentionItem[];
  /** The state in the table that shows all of them. */
  readonly state?: ServiceState;
}

const maxItems = 5;

/** What needs attention on this node: problems of the proxy, then of its Services. */
export function attentionOf(
  status: StatusReport,
  rows: readonly ServiceRow[],
  rates: ReadonlyMap<string, Rate> = new Map(),
): AttentionGroup[] {
  const outages = status.problems.filter(({ outage }) => outage);
  const others = status.problems.filter(({ outage }) => !outage);
  const isSlice = ({ object }: SetAsideReport) => object.startsWith('EndpointSlice ');
  const slices = status.setAside.filter(isSlice);
  const objects = uncontested(
    status.setAside.filter((one) => !isSlice(one)),
    rows,
  );
  const groups: AttentionGroup[] = [
    group('outage', 'Services of this node do not work', outages, problemItem),
    group('warning', 'The proxy is degraded', others, problemItem),
    group('warning', 'Not (fully) programmed', objects, setAsideItem),
    ofState(rows, 'rejected', 'warning', 'No endpoints: clients are refused', (report) =>
      refusalText(report, 'reject'),
    ),
    ofState(rows, 'dropped', 'warning', 'Dropped by policy: clients get no answer', (report) =>
      refusalText(report, 'drop'),
    ),
    group('warning', 'Endpoints refuse connections or do not answer', failingRows(rows, rates), failingItem),
    ofState(rows, 'contested', 'warning', 'Address belongs to another Service', lostText),
    ofState(rows, 'partial', 'note', 'Some endpoints take no traffic', unusedText),
    group('note', 'EndpointSlices with parts that no proxy can use', slices, setAsideItem),
  ];
  return groups.filter((each) => each.count > 0);
}

/** Without the service ports that lost an address to another one: the table says so in a state of their own. */
function uncontested(objects: readonly SetAsideReport[], rows: readonly ServiceRow[]): SetAsideReport[] {
  const contested = new Set(rows.flatMap(({ key, report }) => (report.lost ? key : [])));
  return objects.filter(({ object, family }) => !contested.has(`${object} ${family}`));
}

interface Failing {
  readonly row: ServiceRow;
  readonly failing: number;
}

function failingRows(rows: readonly ServiceRow[], rates: ReadonlyMap<string, Rate>): Failing[] {
  if (rates.size === 0) return [];
  return rows.flatMap((row) => {
    const failing = rates.get(row.key)?.failing ?? 0;
    return failing > 0 ? { row, failing } : [];
  });
}

function failingItem({ row, failing }: Failing): AttentionItem {
  return { service: serviceOf(row.report), text: `${count(failing, 'connection')} in the last minute` };
}

function serviceOf({ namespace, name, service, family }: ServiceReport): AttentionItem['service'] {
  return { namespace, name, label: `${service} (${family})` };
}

function group<T>(
  severity: AttentionGroup['severity'],
  title: string,
  all: readonly T[],
  itemOf: (one: T) => AttentionItem,
): AttentionGroup {
  return { severity, title, count: all.length, items: all.slice(0, maxItems).map(itemOf) };
}

function ofState(
  rows: readonly ServiceRow[],
  state: ServiceState,
  severity: AttentionGroup['severity'],
  title: string,
  textOf: (report: ServiceReport) => string,
): AttentionGroup {
  const itemOf = ({ report }: ServiceRow) => ({ service: serviceOf(report), text: textOf(report) });
  const found = rows.filter((row) => row.state === state);
  return { ...group(severity, title, found, itemOf), state };
}

function problemItem({ family, text }: ProblemReport): AttentionItem {
  return { service: null, text: family === null ? text : `${family}: ${text}` };
}

function setAsideItem({ family, reason, problems }: SetAsideReport): AttentionItem {
  return { service: null, text: `${family}, ${reason}: ${problems.join('; ')}` };
}

function refusalText({ internal, external }: ServiceReport, action: 'reject' | 'drop'): string {
  const sides = [
    ['inside', internal],
    ['outside', external],
  ] as const;
  const texts = sides.flatMap(([side, decision]) =>
    decision?.action === action ? `from ${side}: ${decision.reason}` : [],
  );
  return texts.join('; ');
}

function lostText({ lost = [] }: ServiceReport): string {
  return lost.map(({ frontend, owner }) => `${frontend} belongs to ${owner}`).join('; ');
}

function unusedText(report: ServiceReport): string {
  return `${count(unusedEndpoints(report), 'endpoint')} of ${report.endpoints.known} not in use`;
}
