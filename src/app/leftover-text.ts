import type { Leftover, LeftoverKind } from '../backends/leftovers.ts';
import { API_VERSION } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import type { Family } from '../model/ip.ts';
import type { Removal } from './cleanup.ts';

/** Leftovers of one kind at one place, as JSON shows them. */
export interface LeftoverGroup {
  readonly kind: LeftoverKind;
  readonly family: Family | null;
  readonly place: string | null;
  readonly count: number;
  /** Of chains, tables and the like; empty for rules. */
  readonly names: readonly string[];
  /** Why they stay; null when they do not. */
  readonly reason: string | null;
}

/** Names shown of a group. */
const shownNames = 4;

export function groupsOf(leftovers: readonly Leftover[]): LeftoverGroup[] {
  const groups = Map.groupBy(leftovers, (leftover) => {
    const { kind, family, place } = leftover;
    return [kind, family, place, reasonOf(leftover)].join('|');
  });
  return [...groups.values()].flatMap((members) => {
    const [first] = members;
    if (!first) return [];
    const { kind, family = null, place = null } = first;
    return {
      kind,
      family,
      place,
      count: total(members),
      names: kind === 'iptables rule' ? [] : members.map(({ name }) => name),
      reason: reasonOf(first),
    };
  });
}

/** In few words, by kind: `20 iptables chains, 43 iptables rules (reason)`. */
export function leftoverSummary(leftovers: readonly Leftover[]): string {
  const kinds = Map.groupBy(leftovers, ({ kind }) => kind);
  const counts = [...kinds].map(([kind, members]) => count(total(members), kind));
  const reasons = new Set(leftovers.map(reasonOf).filter((reason) => reason !== null));
  return `${counts.join(', ')}${reasons.size > 0 ? ` (${[...reasons].join('; ')})` : ''}`;
}

/** What a clean-up did, or would do, for people. */
export function removalText({ removed, kept, left }: Removal, isDryRun: boolean): string {
  const sections = [
    leftoverText(isDryRun ? 'A clean-up would remove' : 'Removed', removed),
    leftoverText(isDryRun ? 'It would keep' : 'Kept', kept),
    leftoverText(isDryRun ? 'It could not remove' : 'Still there', left),
  ].filter((text) => text !== '');
  return sections.length > 0 ? sections.join('\n') : 'Nothing to remove.\n';
}

/** Leftovers under a title, with the reasons why they stay; empty when there are none. */
export function leftoverText(title: string, leftovers: readonly Leftover[]): string {
  if (leftovers.length === 0) return '';
  const lines = [...Map.groupBy(leftovers, reasonOf)].flatMap(([reason, members]) => [
    ...placeLines(members),
    ...(reason === null ? [] : [`Reason: ${reason}.`]),
  ]);
  return [`${title}:`, ...lines.map((line) => `  ${line}`), ''].join('\n');
}

/** The same as `removalText`, as JSON. */
export function removalReport({ removed, kept, left }: Removal, isDryRun: boolean): string {
  const groups = { removed: groupsOf(removed), kept: groupsOf(kept), left: groupsOf(left) };
  return `${JSON.stringify({ apiVersion: API_VERSION, kind: 'CleanUp', dryRun: isDryRun, ...groups }, null, 2)}\n`;
}

/** One line per place: `2 iptables chains and 3 iptables rules in IPv4 table nat (iptables-nft): KUBE-SERVICES, …`. */
function placeLines(leftovers: readonly Leftover[]): string[] {
  const places = Map.groupBy(leftovers, ({ kind, family, place }) =>
    place === undefined ? kind : `${family} ${place}`,
  );
  const sorted = [...places].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([place, members]) => {
    const kinds = Map.groupBy(members, ({ kind }) => kind);
    const counts = [...kinds].map(([kind, some]) => count(total(some), kind)).join(' and ');
    const where = members[0]?.place === undefined ? '' : ` in ${place}`;
    return `${counts}${where}${nameList(groupsOf(members).flatMap(({ names }) => names))}`;
  });
}

function nameList(names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > shownNames ? ` and ${names.length - shownNames} more` : '';
  return `: ${names.slice(0, shownNames).join(', ')}${more}`;
}

function reasonOf({ kept, stuck }: Leftover): string | null {
  return kept ?? stuck ?? null;
}

function total(leftovers: readonly Leftover[]): number {
  return leftovers.reduce((sum, leftover) => sum + leftover.count, 0);
}
