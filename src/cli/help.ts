import { wrap } from '../lib/wrap.ts';
import { descriptionColumn, flagLines } from './flag-help.ts';
import type { ProxyFlag } from './flags/flag.ts';
import { flagGroups } from './flags.ts';

/** A feature gate in the help text. */
export interface ListedGate {
  readonly name: string;
  readonly stage: 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';
  readonly default: boolean;
}

/** The layout of the help text. */
export interface HelpOptions {
  readonly gates: readonly ListedGate[];
  /** Columns to wrap at. Without it, for example in a pipe, every flag is on one line, for grep. */
  readonly width?: number | undefined;
}

const description = `kube-proxy makes the Services of a Kubernetes cluster reachable from the node it runs on: it watches
Services and EndpointSlices and programs the kernel so that connections to a Service address arrive at one of the
pods behind it.

Settings come from the flags below or from the file that --config names.`;

/** The text that --help prints. */
export function helpText(options: HelpOptions): string {
  const words = description.split('\n\n').map((paragraph) => wrap(paragraph, options.width ?? 0).join('\n'));
  return `${words.join('\n\n')}\n\n${usageText(options)}`;
}

/** Usage and flags. */
function usageText(options: HelpOptions): string {
  const column = descriptionColumn(visibleFlags());
  const groups = flagGroups.map(({ title, flags }) => {
    const lines = sorted(flags).flatMap((flag) => flagLines(flag, column, options.width));
    return `\n${title}:\n${lines.join('\n')}\n`;
  });
  return `Usage:\n  kube-proxy [flags]\n${groups.join('')}${gateSection(options.gates)}`;
}

/** The alpha and beta gates; last, because the list is long. */
function gateSection(gates: readonly ListedGate[]): string {
  const open = gates.filter((gate) => gate.stage === 'ALPHA' || gate.stage === 'BETA');
  if (open.length === 0) return '';
  const lines = open.map((gate) => `  ${gate.name}=true|false (${gate.stage} - default=${gate.default})`);
  return `\nFeature gates:\n${lines.sort().join('\n')}\n`;
}

function visibleFlags(): ProxyFlag[] {
  return flagGroups.flatMap((group) => sorted(group.flags));
}

/** The flags of a group that are not deprecated, sorted by name. */
function sorted(flags: readonly ProxyFlag[]): ProxyFlag[] {
  const visible = flags.filter((flag) => flag.deprecated === undefined);
  return visible.sort((a, b) => (a.name < b.name ? -1 : 1));
}
