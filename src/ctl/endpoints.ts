import type { EndpointReport } from '../inspect/api.ts';
import { tableText } from './table.ts';
import type { Paint } from './terminal.ts';

/** One line per endpoint, with why it takes traffic or not. */
export function endpointsText(endpoints: readonly EndpointReport[], paint: Paint): string {
  const rows = endpoints.map((endpoint) => [
    endpoint.service,
    endpoint.endpoint,
    stateText(endpoint),
    endpoint.local ? 'yes' : 'no',
    hintsText(endpoint),
    endpoint.usedBy.length > 0 ? endpoint.reason : paint('grey', endpoint.reason),
  ]);
  return tableText(['SERVICE PORT', 'ENDPOINT', 'STATE', 'THIS NODE', 'HINTS', 'WHY'], rows);
}

function stateText({ ready, serving, terminating }: EndpointReport): string {
  if (terminating) return serving ? 'terminating, serving' : 'terminating';
  return ready ? 'ready' : 'not ready';
}

function hintsText({ zoneHints = [], nodeHints = [] }: EndpointReport): string {
  const hints = [...zoneHints.map((zone) => `zone ${zone}`), ...nodeHints.map((node) => `node ${node}`)];
  return hints.join(', ') || '-';
}
