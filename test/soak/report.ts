import { total } from './descriptors.ts';
import type { Cost } from './ledger.ts';
import { tolerances } from './model/tolerances.ts';
import type { SoakReport } from './soak.ts';

/** The outcome of a run, for people. */
export function reportText({ operations, seconds, ledger, sizes, fresh }: SoakReport): string {
  const { connections, answered, refused, explained, conversations } = ledger;
  const memory = sizes.map(({ memoryMB }) => memoryMB);
  const descriptors = sizes.map(({ descriptors: open }) => total(open));
  return [
    `${operations} operations in ${seconds.toFixed(0)} s, ${connections} connections: ${answered} answered, ` +
      `${refused} refused or dropped as promised`,
    ...Object.keys(tolerances).map(
      (cause) => `  failed because of ${cause}: ${explained.get(cause as never) ?? 0}`,
    ),
    `  failed without an explanation: ${ledger.unexplained.length}`,
    `open connections: ${conversations.opened} opened, asked ${conversations.asked} times`,
    `memory ${range(memory)} MB, after a fresh start ${fresh.memoryMB.toFixed(0)} MB; ` +
      `descriptors ${range(descriptors)}, after a fresh start ${total(fresh.descriptors)}`,
    ...[...ledger.costs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, cost]) => costText(kind, cost)),
  ].join('\n');
}

/** What one kind of fault cost, as a line. */
export function costText(kind: string, { times, connections, failed, recoveries, outages }: Cost): string {
  const outage = outages.length > 0 ? `, the last of them began after ${durations(outages)}` : '';
  return (
    `${kind}: ${times} times, ${failed} of ${connections} connections failed${outage}; ` +
    `everything in effect after ${durations(recoveries)}`
  );
}

function durations(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return `${middle.toFixed(0)} ms (longest ${(sorted.at(-1) ?? 0).toFixed(0)} ms)`;
}

function range(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
}
