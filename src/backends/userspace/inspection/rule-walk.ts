import { describeRule, describeVerdict } from '../../../kernel/nft/describe-rule.ts';
import type { BitwiseExpr, Expr, LookupExpr, NatExpr, Verdict } from '../../../kernel/nft/expr.ts';
import { concatLength } from '../../../kernel/nft/fields.ts';
import type { Element, Rule } from '../../../kernel/nft/objects.ts';
import { formatIP, joinHostPort } from '../../../model/ip.ts';
import { isSetName, portalSetDefinition, type SetName } from '../portals/layout.ts';
import { findElement } from './find-element.ts';
import { holds, type IsOwn, loaded, Registers } from './registers.ts';
import type { SeenPacket } from './seen-packet.ts';
import { portOf, showElement, showKey } from './show-element.ts';
import type { TableSnapshot } from './table-snapshot.ts';

/** How a packet leaves a chain; undefined when no rule of it decided anything. */
export type Decided =
  | { readonly kind: 'accept' | 'drop' | 'reject' }
  | { readonly kind: 'dnat'; readonly ip: string; readonly port: number };

/** What one rule says: nothing (its conditions do not hold), a decision, or where to go on. */
type Said = Decided | { readonly kind: 'verdict'; readonly verdict: Verdict } | undefined;

/** What an expression leaves of its rule: it goes on, it is over, or it has said something. */
type Step = 'next' | 'mismatch' | 'unknown' | NonNullable<Said>;

/** As deep as the kernel lets chains call each other. */
const maxDepth = 16;

/** Runs a packet through rules as the kernel holds them, and notes what led it where it goes. */
export class RuleWalk {
  readonly evidence: string[] = [];
  readonly #table: TableSnapshot;
  readonly #isOwn: IsOwn;

  constructor(table: TableSnapshot, isOwn: IsOwn) {
    this.#table = table;
    this.#isOwn = isOwn;
  }

  async chain(name: string, packet: SeenPacket, depth = 0): Promise<Decided | undefined> {
    if (depth >= maxDepth) return undefined;
    for (const rule of this.#table.chains.get(name)?.rules ?? []) {
      const said = await this.#rule(rule, packet);
      if (!said) continue;
      if (said.kind !== 'verdict') return said;
      const { verdict } = said;
      if (verdict.kind === 'continue') continue;
      if (verdict.kind === 'return') return undefined;
      if (!('chain' in verdict)) return { kind: verdict.kind };
      const decided = await this.chain(verdict.chain, packet, depth + 1);
      if (decided || verdict.kind === 'goto') return decided;
    }
    return undefined;
  }

  async #rule(rule: Rule, packet: SeenPacket): Promise<Said> {
    const registers = new Registers();
    const seen: string[] = [];
    for (const expr of rule.exprs) {
      const step = await this.#step(expr, packet, registers, seen);
      if (step === 'next') continue;
      if (step === 'mismatch') return undefined;
      if (step === 'unknown') {
        this.evidence.push(`chain ${rule.chain.name}: not understood, passed over: ${describeRule(rule)}`);
        return undefined;
      }
      this.evidence.push(...seen, ...describeStep(rule.chain.name, step));
      return step;
    }
    return undefined;
  }

  async #step(expr: Expr, packet: SeenPacket, registers: Registers, seen: string[]): Promise<Step> {
    const holding = holds(expr, registers);
    if (holding !== undefined) return holding ? 'next' : 'mismatch';
    const value = loaded(expr, packet, this.#isOwn);
    if (value && 'dreg' in expr && typeof expr.dreg === 'number') {
      registers.write(expr.dreg, value);
      return 'next';
    }
    switch (expr.kind) {
      case 'bitwise':
        return bitwise(expr, registers);
      case 'lookup':
        return this.#lookUp(expr, registers, seen);
      case 'nat':
        return natted(expr, packet, registers);
      case 'reject':
        return { kind: 'reject' };
      case 'verdict':
        return { kind: 'verdict', verdict: expr.verdict };
      case 'counter':
      case 'objref':
        return 'next';
      default:
        return 'unknown';
    }
  }

  async #lookUp(
    { set, sreg, dreg, inverse = false }: LookupExpr,
    registers: Registers,
    seen: string[],
  ): Promise<Step> {
    if (!isSetName(set)) return 'unknown';
    const definition = portalSetDefinition(this.#table.family, set);
    const key = registers.read(sreg, concatLength(definition.key));
    const element = findElement(definition, await this.#table.elements(set), key);
    if ((element === undefined) !== inverse) return 'mismatch';
    seen.push(this.#show(set, key, element));
    if (dreg === 'verdict' && element?.verdict) return { kind: 'verdict', verdict: element.verdict };
    if (typeof dreg === 'number' && element?.data) registers.write(dreg, element.data);
    return 'next';
  }

  #show(set: SetName, key: Uint8Array, element: Element | undefined): string {
    const { family } = this.#table;
    return element ? showElement(family, set, element) : `set ${set} lacks ${showKey(family, set, { key })}`;
  }
}

/** Ways into other chains say nothing by themselves. */
function describeStep(chain: string, step: NonNullable<Said>): string[] {
  if (step.kind === 'dnat') return [`chain ${chain}: dnat to ${joinHostPort(step.ip, step.port)}`];
  if (step.kind !== 'verdict') return [`chain ${chain}: ${step.kind}`];
  return 'chain' in step.verdict ? [] : [`chain ${chain}: ${describeVerdict(step.verdict)}`];
}

function bitwise({ sreg, dreg, mask, xor }: BitwiseExpr, registers: Registers): Step {
  const value = registers.read(sreg, mask.length);
  registers.write(
    dreg,
    value.map((byte, i) => (byte & (mask[i] ?? 0)) ^ (xor[i] ?? 0)),
  );
  return 'next';
}

function natted({ type, family, addr, port }: NatExpr, packet: SeenPacket, registers: Registers): Step {
  if (type !== 'dnat') return 'unknown';
  const length = family === 'ip' ? 4 : 16;
  const bytes = addr === undefined ? undefined : registers.read(addr, length);
  return {
    kind: 'dnat',
    ip: bytes ? formatIP({ family: family === 'ip' ? 'IPv4' : 'IPv6', bytes }) : packet.destination,
    port: port === undefined ? packet.port : portOf(registers.read(port, 2)),
  };
}
