import { podText } from '../inspect/pod-text.ts';
import type { FlowItem } from '../inspect/traffic-api.ts';
import { amountText, spanText } from '../lib/quantity-text.ts';
import type { Column } from './table.ts';

export const flowColumns: readonly Column<FlowItem>[] = [
  { heading: 'CLIENT', cell: ({ client }) => client },
  { heading: 'FRONTEND', cell: ({ frontend }) => frontend, leaveOut: 2 },
  { heading: 'SERVICE PORT', cell: ({ service }) => service, least: 12 },
  { heading: 'ENDPOINT', cell: ({ endpoint }) => endpoint ?? '-' },
  { heading: 'POD', cell: podText, least: 12, leaveOut: 5 },
  { heading: 'PROTOCOL', cell: ({ protocol }) => protocol, leaveOut: 1 },
  { heading: 'STATE', cell: stateText },
  { heading: 'AGE', cell: ageText, leaveOut: 3 },
  { heading: 'BYTES', cell: bytesText, leaveOut: 4 },
  { heading: 'BYTES IN', cell: ({ bytesToEndpoint }) => amountText(bytesToEndpoint), isExtra: true },
  { heading: 'BYTES OUT', cell: ({ bytesToClient }) => amountText(bytesToClient), isExtra: true },
  { heading: 'PACKETS IN', cell: ({ packetsToEndpoint }) => amountText(packetsToEndpoint), isExtra: true },
  { heading: 'PACKETS OUT', cell: ({ packetsToClient }) => amountText(packetsToClient), isExtra: true },
];

function stateText({ state, onFastPath }: FlowItem): string {
  return onFastPath ? `${state}, fast path` : state;
}

function ageText({ ageSeconds }: FlowItem): string {
  return ageSeconds === null ? '-' : spanText(ageSeconds * 1000);
}

/** Both ways. */
function bytesText({ bytesToEndpoint, bytesToClient }: FlowItem): string {
  if (bytesToEndpoint === null && bytesToClient === null) return '-';
  return amountText((bytesToEndpoint ?? 0) + (bytesToClient ?? 0));
}
