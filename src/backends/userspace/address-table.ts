import { servicePortName } from '../../model/service-port.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';

/** One line of the answer to "where can I reach this service?". */
export interface AddressRow {
  /** `namespace/name:port`. */
  readonly service: string;
  /** The address that the service has in the cluster, or its node port: `10.96.0.1:80/TCP`, `:30080/TCP`. */
  readonly frontend: string;
  /** Where it is served: the same address when it is captured; empty when it is not. */
  readonly address: string;
  /** Why it is not served there, or not served at all. */
  readonly note: string;
}

export function addressRow(plan: ServicePlan, frontend: string, address: string, note = ''): AddressRow {
  return { service: servicePortName(plan.port), frontend, address, note };
}

/** Why connections to a frontend are refused; empty when they are not. */
export function refusalNote({ outside: { action, reason } }: Frontend): string {
  if (action === 'forward') return '';
  return `${action === 'drop' ? 'dropped' : 'rejected'}: ${reason}`;
}

/** The rows as text, in columns. */
export function renderAddressTable(rows: Iterable<AddressRow>): string {
  const header = ['SERVICE', 'FRONTEND', 'ADDRESS', 'NOTE'];
  const cells = [...rows].map(({ service, frontend, address, note }) => [
    service,
    frontend,
    address || '-',
    note,
  ]);
  const lines = [header, ...cells.sort((a, b) => (a.join() < b.join() ? -1 : 1))];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
