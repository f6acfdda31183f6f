import { optionOf, parseRule } from '../../kernel/iptables/rule.ts';

/**
 * The key of the service port that owns a rule of ours, from its comment and protocol; undefined for shared rules and
 * for endpoint rules, which have no comments in large clusters.
 */
export function serviceOfRule(line: string): string | undefined {
  const [basic, ...modules] = parseRule(line)?.matches ?? [];
  const comment = modules.find(({ module }) => module === 'comment');
  const name = (comment && optionOf(comment, '--comment')?.values[0]?.split(' ', 1)[0]) ?? '';
  const protocol = basic && optionOf(basic, '-p')?.values[0];
  return name.includes('/') && protocol !== undefined ? `${name}/${protocol.toUpperCase()}` : undefined;
}
