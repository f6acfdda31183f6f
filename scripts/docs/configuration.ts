/** The reference of the configuration file, of flags and of feature gates, from the tables that the program uses. */

import type { ProxyFlag } from '../../src/cli/flags/flag.ts';
import { retiredFlags } from '../../src/cli/flags/retired.ts';
import { flagGroups } from '../../src/cli/flags.ts';
import { setDefaults } from '../../src/config/defaults.ts';
import { knownGates } from '../../src/config/feature-gates.ts';
import { fieldChanges } from '../../src/config/live-fields.ts';
import { type Field, type StructType, type Type, zeroOf } from '../../src/config/schema.ts';
import { v1alpha1 } from '../../src/config/v1alpha1.ts';
import { formatDuration } from '../../src/lib/duration.ts';
import { gateEffects } from './gate-effects.ts';
import { code, table } from './markdown.ts';

const head = ['Field', 'Type', 'Default', 'A change', ''];

/** Fields of the file: those at the top, then a table for each section. */
export function fieldReference(): string {
  const defaults: Readonly<Record<string, unknown>> = setDefaults(zeroOf(v1alpha1));
  const fields: [string, Field][] = Object.entries(v1alpha1.fields);
  const top = fields.filter(([, { type }]) => type.kind !== 'struct');
  const sections = fields.flatMap(([name, { type, about }]) => {
    if (type.kind !== 'struct') return [];
    return `### ${name}\n\n${about}\n\n${table(head, structRows(type, defaults[name], `${name}.`, ''))}`;
  });
  return [
    table(
      head,
      top.flatMap(([name, field]) => fieldRows('', name, field, defaults[name])),
    ),
    ...sections,
  ].join('\n\n');
}

/** `section` is in front of `prefix` in the path of a field. */
function structRows({ fields }: StructType, value: unknown, section: string, prefix: string): string[][] {
  return Object.entries(fields).flatMap(([name, field]) =>
    fieldRows(section, `${prefix}${name}`, field, propertyOf(value, name)),
  );
}

function fieldRows(section: string, path: string, { type, about }: Field, value: unknown): string[][] {
  if (type.kind === 'struct') return structRows(type, value, section, `${path}.`);
  const row = [code(path), typeText(type), defaultText(type, value), changeText(`${section}${path}`), about];
  const isListOfStructs = type.kind === 'list' && type.of.kind === 'struct';
  return isListOfStructs ? [row, ...structRows(type.of, {}, section, `${path}[].`)] : [row];
}

/** Empty for a field that has no effect, and for one of a list, whose row tells it. */
function changeText(path: string): string {
  const change = Object.entries(fieldChanges).find(([field]) => field === path)?.[1];
  if (!change) return '';
  if ('restart' in change) return 'restart';
  return change.live.length === 0 ? '' : 'live';
}

/** Why a change of a field needs a restart, by reason. */
export function restartReference(): string {
  const reasons = Object.entries(fieldChanges).flatMap(([field, change]) =>
    'restart' in change ? [{ field, reason: change.restart }] : [],
  );
  const rows = [...Map.groupBy(reasons, ({ reason }) => reason)].map(([reason, fields]) => [
    fields.map(({ field }) => code(field)).join(', '),
    reason,
  ]);
  return table(['Field', 'A change needs a restart because'], rows);
}

function typeText(type: Type): string {
  if (type.kind === 'nullable') return type.of.kind;
  if (type.kind === 'list') return type.of.kind === 'struct' ? 'list' : `list of ${typeText(type.of)}`;
  if (type.kind === 'map') return `map of ${typeText(type.of)}`;
  return type.kind;
}

/** Empty for an empty default: the description then says what it means. */
function defaultText(type: Type, value: unknown): string {
  if (value === undefined || value === null || value === '') return '';
  const scalar = type.kind === 'nullable' ? type.of : type;
  const isDuration = scalar.kind === 'duration' || scalar.kind === 'nanoseconds';
  return code(isDuration && typeof value === 'bigint' ? formatDuration(value) : String(value));
}

function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** Every flag, in the groups and the words of `--help`; then those of earlier releases. */
export function flagReference(): string {
  const groups = flagGroups.map(({ title, flags }) => {
    const rows = flags
      .toSorted(byName)
      .map((flag) => [
        flag.shorthand ? `${code(`--${flag.name}`)}, ${code(`-${flag.shorthand}`)}` : code(`--${flag.name}`),
        flag.typeName,
        flag.defaultText === '' ? '' : code(flag.defaultText),
        flag.deprecated ? `Deprecated: ${flag.deprecated}` : flag.help,
      ]);
    return `### ${title}\n\n${table(['Flag', 'Type', 'Default', ''], rows)}`;
  });
  const retired = retiredFlags
    .toSorted(byName)
    .map(({ name, deprecated }) => [code(`--${name}`), deprecated ?? '']);
  return [...groups, `### Flags of earlier releases\n\n${table(['Flag', ''], retired)}`].join('\n\n');
}

function byName(a: ProxyFlag, b: ProxyFlag): number {
  return a.name < b.name ? -1 : 1;
}

/** The gates with an effect here, and that effect; then all others by stage. */
export function gateReference(): string {
  const gates = knownGates();
  const rows = Object.entries(gateEffects).map(([name, effect]) => {
    const gate = gates.find((known) => known.name === name);
    if (!gate) throw new Error(`there is no feature gate ${name}`);
    return [code(name), gate.stage, code(String(gate.default)), effect];
  });
  const others = gates.filter(({ name }) => !(name in gateEffects));
  const groups = Map.groupBy(others, ({ stage, default: isOn, locked }) => {
    const state = locked ? `locked to ${isOn}` : `default ${isOn}`;
    return `${stage}, ${state}`;
  });
  const lists = [...groups].map(
    ([title, members]) => `**${title}:** ${members.map(({ name }) => name).join(', ')}`,
  );
  return [
    table(['Gate', 'Stage', 'Default', 'Effect'], rows),
    '<details><summary>Gates that are accepted and have no effect here</summary>',
    ...lists,
    '</details>',
  ].join('\n\n');
}
