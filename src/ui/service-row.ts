import type { ServiceReport, SetAsideReport } from '../inspect/api.ts';
import { joinHostPort } from '../model/ip.ts';
import type { ServiceFilter } from './route.ts';

/** What there is to say about a service port at first sight; the worst of all that hold. */
export type ServiceState = 'refused' | 'rejected' | 'dropped' | 'contested' | 'partial' | 'fine';

/** One line of the table. */
export interface ServiceRow {
  readonly report: ServiceReport;
  /** Identifies it among all families. */
  readonly key: string;
  readonly state: ServiceState;
  /** What a search looks at, in lower case. */
  readonly searched: string;
}

/** The words for each state. */
export const stateTexts: Readonly<Record<ServiceState, string>> = {
  refused: 'not programmed',
  rejected: 'no endpoints',
  dropped: 'dropped by policy',
  contested: 'address contested',
  partial: 'endpoints unused',
  fine: 'fine',
};

/** Objects that are not (fully) programmed, for `rowOf`. */
export function faultyObjects(setAside: readonly SetAsideReport[]): ReadonlySet<string> {
  return new Set(setAside.map(({ family, object }) => `${family} ${object}`));
}

export function rowOf(report: ServiceReport, faulty: ReadonlySet<string> = new Set()): ServiceRow {
  const { service, family, clusterIP, port, nodePort, externalIPs, loadBalancerIPs } = report;
  const addresses = [clusterIP, ...externalIPs, ...loadBalancerIPs].map((ip) => joinHostPort(ip, port));
  const reachable = report.direct?.places.flatMap(({ address }) => address ?? []) ?? [];
  const searched = [service, ...addresses, nodePort === 0 ? '' : `:${nodePort}`, ...reachable, family];
  return {
    report,
    key: `${service} ${family}`,
    state: stateOf(report, faulty),
    searched: searched.join(' ').toLowerCase(),
  };
}

function stateOf(report: ServiceReport, faulty: ReadonlySet<string>): ServiceState {
  const { namespace, name, service, internal, external, lost = [], family } = report;
  // A service port that lost an address to another one is among the faulty objects, too.
  const isRefused = lost.length === 0 && faulty.has(`${family} ${service}`);
  if (isRefused || faulty.has(`${family} Service ${namespace}/${name}`)) return 'refused';
  const actions = [internal.action, external?.action];
  if (actions.includes('reject')) return 'rejected';
  if (actions.includes('drop')) return 'dropped';
  if (lost.length > 0) return 'contested';
  return unusedEndpoints(report) > 0 ? 'partial' : 'fine';
}

/**
 * Endpoints that take no traffic although neither hints nor a traffic policy keep it from them: they are not ready, or
 * on their way out.
 */
export function unusedEndpoints({ internal, external, topology, endpoints }: ServiceReport): number {
  const usesAll = [internal, external].some(
    (decision) => decision?.action === 'forward' && decision.endpoints === 'cluster',
  );
  return usesAll && topology.mode === 'none' ? endpoints.known - endpoints.cluster : 0;
}

/** The rows that a filter selects. Every word of the search must occur; `also` are rows that fit for other reasons. */
export function selectRows(
  rows: readonly ServiceRow[],
  { search, namespace, state }: ServiceFilter,
  also: ReadonlySet<string> = new Set(),
): readonly ServiceRow[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && namespace === '' && state === '') return rows;
  return rows.filter(
    (row) =>
      (namespace === '' || row.report.namespace === namespace) &&
      (state === '' || row.state === state || (state === 'attention' && row.state !== 'fine')) &&
      (also.has(row.key) || words.every((word) => row.searched.includes(word))),
  );
}

/** Whether a search is an address, which may be that of an endpoint. */
export function isAddressSearch(search: string): boolean {
  return /^(\d+(\.\d+){3}(:\d+)?|\[?[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*\]?(:\d+)?)$/i.test(search);
}
