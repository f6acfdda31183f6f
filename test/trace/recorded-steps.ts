import type { TraceStep } from '../../src/kernel/nft/trace.ts';
import { parseIP } from '../../src/model/ip.ts';

/** The name of the table that marks packets. */
export const TRACER = 'tracer';

/** Headers of a TCP packet, as the kernel reports them on entry to a base chain. */
export function headers(
  from: string,
  to: string,
  ports: readonly [number, number],
): Pick<TraceStep, 'network' | 'transport'> {
  const [source, destination] = [from, to].map((address) => [...(parseIP(address)?.bytes ?? [])]);
  const start = from.includes(':') ? [0x60, 0, 0, 0, 0, 0, 6, 64] : [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
  return {
    network: Uint8Array.from([...start, ...(source ?? []), ...(destination ?? [])]),
    transport: Uint8Array.from(ports.flatMap((port) => [port >> 8, port & 0xff])),
  };
}

/** A rule that matched, unless the parts say otherwise. */
export function step(table: string, chain: string, parts: Partial<TraceStep> = {}): TraceStep {
  return { id: 7, family: 'ip', table, chain, kind: 'rule', verdict: { kind: 'continue' }, ...parts };
}

/** The step that begins the trace of a packet. */
export function marked(parts: Partial<TraceStep>): TraceStep {
  return step(TRACER, 'mark', { family: 'inet', ruleHandle: 2n, ...parts });
}

/** A packet passes a chain of the trace table. */
export function observer(chain: string, parts: Partial<TraceStep>): TraceStep {
  return step(TRACER, chain, { family: 'inet', kind: 'policy', verdict: { kind: 'accept' }, ...parts });
}
