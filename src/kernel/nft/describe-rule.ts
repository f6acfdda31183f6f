import type { Expr, Verdict } from './expr.ts';
import type { BaseChain, Rule } from './objects.ts';

/**
 * The text of a rule, one part per expression, in the vocabulary of `nft --debug=netlink`. Equal rules have equal texts,
 * independent of the order of properties.
 */
export function describeRule({ exprs }: Pick<Rule, 'exprs'>): string {
  return exprs.map(describeExpr).join(' ');
}

/** One rule per line. */
export function describeRules(rules: readonly Pick<Rule, 'exprs'>[]): string {
  return rules.map(describeRule).join('\n');
}

/** How a chain is declared: `type filter hook input priority 0`, or `regular chain`. */
export function describeHook(base: BaseChain | undefined): string {
  if (!base) return 'regular chain';
  const policy = base.policy === 'drop' ? ' policy drop' : '';
  return `type ${base.type} hook ${base.hook} priority ${base.priority}${policy}`;
}

/** `goto cluster-pick-2`, `drop`. */
export function describeVerdict(verdict: Verdict): string {
  return 'chain' in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind;
}

function describeExpr(expr: Expr): string {
  if (expr.kind === 'verdict') return `[ ${describeVerdict(expr.verdict)} ]`;
  const { kind, ...fields } = expr;
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = sorted.map(([name, value]) => `${name} ${describeField(value)}`);
  return `[ ${[kind, ...parts].join(' ')} ]`;
}

function describeField(value: unknown): string {
  return value instanceof Uint8Array ? `0x${Buffer.from(value).toString('hex')}` : String(value);
}
