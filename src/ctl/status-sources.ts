import type { ConfigurationReport, SourcesReport, StatusReport, WatchReport } from '../inspect/api.ts';
import { type Column, itemsText, type Layout } from './table.ts';
import type { Paint } from './terminal.ts';
import { agoText, spanText } from './text.ts';

/** Where the objects come from, a table of the watches, the files that are not in effect, and the configuration file. */
export function sourcesText(
  { sources, configuration, time }: StatusReport,
  paint: Paint,
  layout?: Layout,
): string {
  const heading = sources.kind === 'APIServer' ? 'Objects from the API server' : 'Objects from manifests in';
  const lines = [
    `\n${heading} ${sources.location}\n`,
    ...(sources.watches.length > 0
      ? [itemsText(watchColumns(sources, time, paint), sources.watches, layout)]
      : []),
    ...sources.errors.map((error) => fileLine(error, time, paint)),
    ...configurationLines(configuration, time, paint),
  ];
  return lines.join('');
}

function watchColumns({ watches }: SourcesReport, now: string, paint: Paint): readonly Column<WatchReport>[] {
  const reason: Column<WatchReport> = { heading: 'REASON', cell: ({ reason: why }) => why ?? '', least: 16 };
  return [
    { heading: 'RESOURCE', cell: ({ resource }) => resource },
    { heading: 'WATCH', cell: (watch) => watchText(watch, now, paint) },
    {
      heading: 'LAST EVENT',
      cell: ({ lastEvent }) => (lastEvent === null ? 'never' : agoText(lastEvent, now)),
    },
    ...(watches.some((watch) => watch.reason !== null) ? [reason] : []),
  ];
}

function watchText({ state, since }: WatchReport, now: string, paint: Paint): string {
  const span = spanText(Date.parse(now) - Date.parse(since));
  if (state === 'connected') return `connected for ${span}`;
  return state === 'broken' ? paint('yellow', `stale for ${span}`) : `connecting for ${span}`;
}

function fileLine(error: SourcesReport['errors'][number], now: string, paint: Paint): string {
  const { path, position, reason, since } = error;
  const place = position === null ? path : `${path}:${position}`;
  return `  ${paint('yellow', `${place}: ${reason}`)} (for ${spanText(Date.parse(now) - Date.parse(since))})\n`;
}

const onDiskTexts: Record<ConfigurationReport['onDisk']['state'], string> = {
  InUse: 'the file on disk is the one in use',
  Changed: 'the file on disk has changed, and the program ends to be restarted with it',
  Rejected: 'THE FILE ON DISK WAS REJECTED, the former configuration is in use',
  Unusable: 'THE FILE ON DISK CANNOT BE USED, a restart would fail',
  Unknown: 'it is not known whether the file on disk is the one in use',
};

function configurationLines(report: ConfigurationReport | null, now: string, paint: Paint): string[] {
  if (report === null) return ['\nConfiguration from flags, without a file\n'];
  const { file, sha256, readTime, generation, onDisk } = report;
  const reason = onDisk.reason === null ? '' : `: ${onDisk.reason}`;
  const isBad = onDisk.state === 'Unusable' || onDisk.state === 'Rejected';
  const state = `${onDiskTexts[onDisk.state]}${reason}`;
  return [
    `\nConfiguration ${file}, generation ${generation}, read ${agoText(readTime, now)}, sha256 ${sha256.slice(0, 12)}\n`,
    `  ${isBad ? paint('yellow', state) : state}\n`,
    ...changeLines(report.lastChange, now),
  ];
}

const outcomeTexts = {
  Applied: 'applied without a restart',
  Rejected: 'rejected',
  RestartNeeded: 'needs a restart',
} as const;

function changeLines(change: ConfigurationReport['lastChange'], now: string): string[] {
  if (change === null) return [];
  const fields = change.fields.length === 0 ? 'no field that is in use' : change.fields.join(', ');
  return [`  last change ${outcomeTexts[change.outcome]} ${agoText(change.time, now)}: ${fields}\n`];
}
