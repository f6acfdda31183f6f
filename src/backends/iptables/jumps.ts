import { CommandError } from '../../kernel/iptables/command-error.ts';
import type { Commands } from '../../kernel/iptables/commands.ts';
import type { TableName } from './tables.ts';

/** A rule that leads from a chain of the kernel to one of ours. */
export interface Jump {
  readonly table: TableName;
  readonly from: string;
  readonly to: string;
  /** Only the first packet of a connection. */
  readonly onlyNew: boolean;
  readonly comment?: string;
}

/** The kubelet makes this chain of filter and writes into it, too. */
export const sharedChain = 'KUBE-FIREWALL';

const externalPortals = 'kubernetes externally-visible service portals';
const portals = 'kubernetes service portals';
const firewall = 'kubernetes load balancer firewall';

/** In the order in which they are made: each goes in front of those before it. */
export const jumps: readonly Jump[] = [
  filterNew('INPUT', externalPortals, 'KUBE-EXTERNAL-SERVICES'),
  filterNew('FORWARD', externalPortals, 'KUBE-EXTERNAL-SERVICES'),
  filterAll('INPUT', 'kubernetes health check service ports', 'KUBE-NODEPORTS'),
  filterNew('FORWARD', portals, 'KUBE-SERVICES'),
  filterNew('OUTPUT', portals, 'KUBE-SERVICES'),
  filterAll('FORWARD', 'kubernetes forwarding rules', 'KUBE-FORWARD'),
  filterNew('INPUT', firewall, 'KUBE-PROXY-FIREWALL'),
  filterNew('OUTPUT', firewall, 'KUBE-PROXY-FIREWALL'),
  filterNew('FORWARD', firewall, 'KUBE-PROXY-FIREWALL'),
  nat('OUTPUT', portals, 'KUBE-SERVICES'),
  nat('PREROUTING', portals, 'KUBE-SERVICES'),
  nat('POSTROUTING', 'kubernetes postrouting rules', 'KUBE-POSTROUTING'),
  { table: 'filter', from: 'INPUT', to: sharedChain, onlyNew: false },
  { table: 'filter', from: 'OUTPUT', to: sharedChain, onlyNew: false },
];

/** Those whose chain is ours alone; the shared one stays, with what leads to it. */
export const ownJumps: readonly Jump[] = jumps.filter(({ to }) => to !== sharedChain);

/**
 * Makes chains and jumps that are missing; those that are there are left where they are. The common case, that all are
 * there, takes one command per chain of the kernel; what is missing comes in one go, except for the shared chain:
 * restore input can only make a chain that it also empties, and the kubelet may make this one at any moment.
 */
export async function ensureJumps(commands: Commands): Promise<void> {
  const present = await presentRules(commands);
  const missing: Jump[] = [];
  for (const jump of jumps) {
    const rules = present.get(`${jump.table} ${jump.from}`) ?? [];
    if (rules.includes(savedRule(jump))) continue;
    // Another version may print the rule in other words, so that only the program can tell whether it is there.
    const mayBeThere = rules.some((rule) => rule.endsWith(` -j ${jump.to}`));
    if (mayBeThere && (await commands.ruleExists(jump.table, jump.from, ruleArguments(jump)))) continue;
    missing.push(jump);
  }
  if (missing.length === 0) return;
  if (missing.some(({ to }) => to === sharedChain)) await commands.createChain('filter', sharedChain);
  await commands.restore(await insertions(commands, missing));
}

/** Restore input that puts each jump in front of its chain. A chain that exists is not declared: that would flush it. */
async function insertions(commands: Commands, missing: readonly Jump[]): Promise<string[]> {
  const lines: string[] = [];
  for (const [table, list] of Map.groupBy(missing, (jump) => jump.table)) {
    const existing = await chainNames(commands, table);
    const chains = new Set(list.map(({ to }) => to).filter((to) => to !== sharedChain && !existing.has(to)));
    lines.push(`*${table}\n`);
    for (const chain of chains) lines.push(`:${chain} - [0:0]\n`);
    for (const jump of list) lines.push(`-I ${jump.from} ${ruleText(jump)}\n`);
    lines.push('COMMIT\n');
  }
  return lines;
}

/** Every chain of a table, whoever made it. */
export async function chainNames(commands: Commands, table: TableName): Promise<Set<string>> {
  const names = new Set<string>();
  await commands.save(table, (line) => {
    if (line.startsWith(':')) names.add(line.slice(1).split(' ', 1)[0] ?? '');
  });
  return names;
}

/** Removes the jumps that belong to this mode alone; what is not there is fine. */
export async function removeJumps(commands: Commands): Promise<void> {
  const present = await presentRules(commands);
  for (const jump of ownJumps) {
    const rules = present.get(`${jump.table} ${jump.from}`) ?? [];
    if (rules.some((rule) => rule.endsWith(` -j ${jump.to}`))) await removeJump(commands, jump);
  }
}

async function removeJump(commands: Commands, jump: Jump): Promise<void> {
  try {
    const rule = ruleArguments(jump);
    if (await commands.ruleExists(jump.table, jump.from, rule)) {
      await commands.deleteRule(jump.table, jump.from, rule);
    }
  } catch (error) {
    if (!(error instanceof CommandError && error.isNotFound)) throw error;
  }
}

/** A jump as arguments of a command. */
export function ruleArguments({ onlyNew, comment, to }: Jump): string[] {
  return [
    ...(onlyNew ? ['-m', 'conntrack', '--ctstate', 'NEW'] : []),
    ...(comment === undefined ? [] : ['-m', 'comment', '--comment', comment]),
    '-j',
    to,
  ];
}

/** A jump as `-S` and `iptables-save` print it. */
export function savedRule(jump: Jump): string {
  return `-A ${jump.from} ${ruleText(jump)}`;
}

function ruleText(jump: Jump): string {
  return ruleArguments(jump)
    .map((word) => (word.includes(' ') ? `"${word}"` : word))
    .join(' ');
}

/** The rules of every chain that jumps start from, by table and chain. */
async function presentRules(commands: Commands): Promise<Map<string, readonly string[]>> {
  const rules = new Map<string, readonly string[]>();
  for (const { table, from } of jumps) {
    const key = `${table} ${from}`;
    if (!rules.has(key)) rules.set(key, await commands.rules(table, from));
  }
  return rules;
}

function filterNew(from: string, comment: string, to: string): Jump {
  return { table: 'filter', from, to, onlyNew: true, comment };
}

function filterAll(from: string, comment: string, to: string): Jump {
  return { table: 'filter', from, to, onlyNew: false, comment };
}

function nat(from: string, comment: string, to: string): Jump {
  return { table: 'nat', from, to, onlyNew: false, comment };
}
