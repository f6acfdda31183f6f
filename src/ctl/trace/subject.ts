import { readQuestion } from '../../inspect/question.ts';
import type { Selector } from '../../inspect/selection.ts';
import type { CIDR } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { hostCIDR, type Interest, interestsBetween, interestsIn, sourceOf } from '../../trace/interest.ts';
import { readPacket } from '../packet-argument.ts';
import { requireSome } from '../selector.ts';
import { isServiceDestination } from '../service-destination.ts';
import type { ReportSource } from '../source.ts';

/** What a trace is about. */
export interface Subject {
  readonly text: string;
  readonly interests: readonly Interest[];
}

/** Protocols of a destination without a port. */
const anyProtocol: readonly Protocol[] = ['TCP', 'UDP'];

/** Reads `SERVICE` or `SRC DST[:PORT][/PROTO]`. Throws when they make no sense; rejects when a Service is unknown. */
export async function subjectOf(
  args: readonly string[],
  source: Pick<ReportSource, 'services'>,
  namespace: Pick<Selector, 'namespace'>,
): Promise<Subject> {
  const [first = '', second] = args;
  if (second === undefined) {
    return { text: first, interests: await serviceInterests(first, source, namespace) };
  }
  const from = sourceOf(first.replace(/^\[(.*)\]$/, '$1'));
  if (!from) throw new Error(`SRC ${JSON.stringify(first)} is not an address, a CIDR or "node"`);
  const interests = isServiceDestination(second)
    ? await serviceInterests(second, source, namespace, from)
    : addressInterests(from, second);
  if (interests.length === 0) {
    throw new Error(`source ${first} and destination ${second} are of different families`);
  }
  return { text: `${first} → ${second}`, interests };
}

async function serviceInterests(
  name: string,
  source: Pick<ReportSource, 'services'>,
  namespace: Pick<Selector, 'namespace'>,
  from?: CIDR | 'node',
): Promise<Interest[]> {
  const selector = { name, ...namespace };
  const { items } = await source.services(selector);
  requireSome(items, selector);
  return interestsIn(items, from);
}

function addressInterests(from: CIDR | 'node', text: string): Interest[] {
  const alone = hostCIDR(text.replace(/^\[(.*)\]$/, '$1'));
  if (alone) return interestsBetween(from, alone, undefined, anyProtocol);
  const { destination, port, protocol } = readPacket('node', text);
  const parts = new Map(Object.entries({ source: 'node', destination, port, protocol }));
  const question = readQuestion((name) => parts.get(name) ?? null);
  const cidr = hostCIDR(question.destination);
  return cidr ? interestsBetween(from, cidr, question.port, [question.protocol]) : [];
}
