import type { Fate } from '../backends/inspection.ts';
import { nameOf, protocolNumbers } from '../kernel/numbers.ts';
import {
  destinationText,
  type Ending,
  endingOf,
  endsOf,
  type Headers,
  type Journey,
  sourceText,
  stepTexts,
} from './journey.ts';
import { printable } from './printable.ts';
import type { Culprit, Outcome, TracedConnection } from './report.ts';

/** What is known of an answer to the first packet of a connection. */
export type Answer = 'answered' | 'refused' | 'incomplete' | 'unanswered' | 'unknown';

/** What was found out about a followed packet besides its way. */
export interface Evidence {
  /** By index. */
  readonly interfaces: ReadonlyMap<number, string>;
  /** The rule that stopped the packet: absent for a policy, and when it is no longer there. */
  readonly rule?: { readonly comment: string | null; readonly isReject: boolean };
  /** The rule or policy that stopped it belongs to kube-proxy. */
  readonly isOurs: boolean;
  /** Another program that it belongs to, where that is known. */
  readonly owner?: string;
  /** What kube-proxy decided about it; absent when it could not be asked. */
  readonly decision?: {
    readonly service: string | null;
    readonly fate: Fate;
    readonly reasons: readonly string[];
  };
  readonly answer: Answer;
  /** Where the packet was lost: the likely causes, in words. */
  readonly causes: readonly string[];
}

/** A verdict, and reasons in sentences. */
interface Told {
  readonly outcome: Outcome;
  readonly verdict: string;
  readonly reasons: readonly string[];
  readonly culprit?: Culprit;
}

/** The story of one packet; undefined when its addresses cannot be read. */
export function storyOf(journey: Journey, evidence: Evidence): TracedConnection | undefined {
  const { first, last } = endsOf(journey);
  if (!first || !last) return undefined;
  const ending = endingOf(journey);
  const told = tell(ending, last, evidence);
  const [source, destination] = [sourceText(first), destinationText(first)];
  const endpoint = destinationText(last) === destination ? null : destinationText(last);
  const service = evidence.decision?.service ?? null;
  const place = service === null ? destination : `${service} ${destination}`;
  const left = ending.kind === 'left' ? interfaceOf(journey.at(-1)?.outInterface, evidence) : null;
  return {
    family: first.family,
    protocol: nameOf(protocolNumbers, first.protocol) ?? String(first.protocol),
    source,
    destination,
    service,
    endpoint,
    masqueradedAs: sourceText(last) === source ? null : sourceText(last),
    entered: interfaceOf(journey[0]?.inInterface, evidence),
    left,
    outcome: told.outcome,
    culprit: told.culprit ?? null,
    verdict: told.verdict,
    headline: `${told.verdict}: ${[source, place, ...(endpoint === null ? [] : [endpoint])].join(' → ')}`,
    reasons: told.reasons,
    passed: passedChains(journey),
    steps: stepTexts(journey).map(printable),
  };
}

function tell(ending: Ending, last: Headers, evidence: Evidence): Told {
  switch (ending.kind) {
    case 'stopped':
      return tellStopped(ending, evidence);
    case 'lost':
      return tellLost(ending, evidence);
    case 'left':
      return tellDelivered(destinationText(last), evidence.answer);
    case 'arrived':
      return tellDelivered(`a process of this node at ${destinationText(last)}`, evidence.answer);
  }
}

function tellStopped({ hook, step }: Extract<Ending, { kind: 'stopped' }>, evidence: Evidence): Told {
  const { rule, isOurs, owner, decision } = evidence;
  const culprit: Culprit = {
    table: printable(`${step.family} ${step.table}`),
    chain: printable(step.chain),
    hook,
    handle: step.ruleHandle === undefined || step.kind === 'policy' ? null : Number(step.ruleHandle),
    comment: rule?.comment == null ? null : printable(rule.comment),
    ours: isOurs,
  };
  const outcome = rule?.isReject ? 'rejected' : 'dropped';
  const word = outcome === 'rejected' ? 'Rejected' : 'Dropped';
  const place = culpritText(culprit);
  if (!isOurs) {
    const who = owner === undefined ? place : `${owner} (${place})`;
    return { outcome, verdict: `${word} by ${who}`, reasons: [], culprit };
  }
  const isDecided = decision && (decision.fate.action === 'drop' || decision.fate.action === 'reject');
  if (!decision) return { outcome, verdict: `${word} by kube-proxy (${place})`, reasons: [], culprit };
  if (!isDecided) {
    const odd = 'kube-proxy decided to let the packet pass; kube-proxyctl diff shows how the kernel differs.';
    return { outcome, verdict: `${word} by ${place}`, reasons: [odd], culprit };
  }
  return {
    outcome,
    verdict: `${word} by kube-proxy: ${decisive(decision.reasons)} (${place})`,
    reasons: decision.reasons.map(printable),
    culprit,
  };
}

/** The reason that decided: the last one says what the client notices. */
function decisive(reasons: readonly string[]): string {
  return printable((reasons.at(-2) ?? reasons.at(-1) ?? '').replace(/\.$/, ''));
}

/** `table inet firewall, chain forward, rule handle 12 ("no pods")`. */
export function culpritText({ table, chain, handle, comment }: Culprit): string {
  const what = handle === null ? 'policy drop' : `rule handle ${handle}`;
  return `table ${table}, chain ${chain}, ${what}${comment === null ? '' : ` ("${comment}")`}`;
}

function tellLost({ hook, where }: Extract<Ending, { kind: 'lost' }>, { causes }: Evidence): Told {
  const [likeliest, ...others] = causes.map(printable);
  const cause = likeliest === undefined ? '' : `, probably by ${likeliest}`;
  const further = others.length === 0 ? [] : [`Other possible causes: ${others.join('; ')}.`];
  return {
    outcome: 'lost',
    verdict: `Lost ${lostPlaces(hook, where)}${cause}`,
    reasons: ['No rule of nf_tables dropped the packet: the trace ends there.', ...further],
  };
}

function lostPlaces(hook: string, where: 'inside' | 'after'): string {
  if (where === 'inside') return `at hook ${hook}`;
  if (hook === 'prerouting') return 'between prerouting and forward or input, where the route is looked up';
  if (hook === 'output') return 'between output and postrouting, where the route is looked up';
  return `between ${hook} and postrouting`;
}

function tellDelivered(to: string, answer: Answer): Told {
  switch (answer) {
    case 'answered':
      return { outcome: 'answered', verdict: `Delivered to ${to}, which answered`, reasons: [] };
    case 'refused':
      return {
        outcome: 'refused',
        verdict: `Refused by ${to}`,
        reasons: ['A reset came back at once: nothing listens there, or a firewall of the endpoint refuses.'],
      };
    case 'incomplete':
      return {
        outcome: 'incomplete',
        verdict: `Answered by ${to}, but the handshake was not completed`,
        reasons: ['The answer reached this node and may have been dropped on the way back to the client.'],
      };
    case 'unanswered':
      return {
        outcome: 'unanswered',
        verdict: `No answer from ${to}`,
        reasons: [
          'The packet was sent there. It, or the answer, got lost behind this node, or nobody answers.',
        ],
      };
    case 'unknown':
      return {
        outcome: 'delivered',
        verdict: `Delivered to ${to}`,
        reasons: ['Whether an answer came is not known: the kernel does not track the connection.'],
      };
  }
}

function interfaceOf(index: number | undefined, { interfaces }: Evidence): string | null {
  return index === undefined ? null : printable(interfaces.get(index) ?? `interface ${index}`);
}

/** Chains of others and of the proxy by hook, in the order of the packet. */
function passedChains(journey: Journey): TracedConnection['passed'] {
  const passed: { hook: string; chains: string[] }[] = [];
  for (const { hook, table, chain, isObserver } of journey) {
    if (passed.at(-1)?.hook !== hook) passed.push({ hook, chains: [] });
    if (!isObserver) passed.at(-1)?.chains.push(printable(`${table} ${chain}`));
  }
  return passed;
}
