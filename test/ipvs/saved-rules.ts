import { chains } from '../../src/backends/ipvs/chains.ts';
import type { JumpTable } from '../../src/backends/jumps.ts';
import type { Family } from '../../src/model/ip.ts';

/** Rules by chain, each in order, as `iptables-save` prints them. */
export type SavedRules = Readonly<Record<string, readonly string[]>>;

/** What `iptables-save` would print of one table after this restore input and these jumps. */
export function savedRules(
  family: Family,
  table: JumpTable,
  input: string,
  jumps: readonly string[],
): SavedRules {
  const rules: Record<string, string[]> = {};
  for (const chain of chains[table]) rules[chain] = [];
  const append = (chain: string, rule: string) => {
    const known = rules[chain] ?? [];
    known.push(rule);
    rules[chain] = known;
  };
  for (const jump of jumps) {
    const [, jumpTable, from = '', to, comment] = /^(\S+) (\S+) (\S+) (.*)$/.exec(jump) ?? [];
    if (jumpTable === table) append(from, `-A ${from} -m comment --comment "${comment}" -j ${to}`);
  }
  const [, body = ''] = new RegExp(`\\*${table}\\n([^*]*)COMMIT\\n`).exec(input) ?? [];
  for (const line of body.split('\n')) {
    const chain = /^-A (\S+)/.exec(line)?.[1];
    if (chain !== undefined) append(chain, asSaved(line, family));
  }
  return rules;
}

/** The same from a recorded dump. */
export function recordedRules(lines: readonly string[]): SavedRules {
  const rules: Record<string, string[]> = {};
  for (const line of lines) {
    const chain = /^(?::|-A )(\S+)/.exec(line)?.[1] ?? '';
    const known = rules[chain] ?? [];
    if (line.startsWith('-A ')) known.push(line);
    rules[chain] = known;
  }
  return rules;
}

function asSaved(line: string, family: Family): string {
  const icmp = family === 'IPv4' ? 'icmp' : 'icmp6';
  return line
    .replace(/0x0*([0-9a-f]+)/g, '0x$1')
    .replace(/--or-mark (\S+)/, '--set-xmark $1/$1')
    .replace(/--xor-mark (\S+)/, '--set-xmark $1/0x0')
    .replace(/-j REJECT$/, `-j REJECT --reject-with ${icmp}-port-unreachable`)
    .replace(/^(-A \S+) (.*) (! -[si] \S+) (-j .*)$/, '$1 $3 $2 $4')
    .replaceAll("'", "\\'");
}
