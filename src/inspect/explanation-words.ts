import type { Binding, Fate, Obstacle, ObstacleCause, OtherChain, Target } from '../backends/inspection.ts';
import { count } from '../lib/count.ts';
import { spanText } from '../lib/quantity-text.ts';
import { joinHostPort } from '../model/ip.ts';
import type { ExplanationReport, ServiceReport } from './api.ts';

/** The sentences of an explanation, for kube-proxyctl and its page. */

const notPossible = 'which is not possible in this proxy mode';

/** How an endpoint is chosen, where the Service asks for something. */
export function balanceText(service: ServiceReport): string | undefined {
  const { balance, hashScheduler, unsupportedBalance } = service;
  if (unsupportedBalance) return `as usual: the Service asks for ${unsupportedBalance}, ${notPossible}`;
  if (balance === undefined) return undefined;
  if (balance === null) return 'as usual: too many endpoints for the hash that the Service asks for';
  const by = balance === 'hash' ? 'address and port' : 'address';
  const whose =
    hashScheduler === undefined ? 'the same on every node' : `with the scheduler ${hashScheduler}`;
  return `${balance}: by the client's ${by}, ${whose}`;
}

/** What happens to connections to endpoints that are gone, where the Service or a flag asks for something. */
export function departedText({ resetsDeparted, unsupportedReset }: ServiceReport): string | undefined {
  if (unsupportedReset) return `no TCP reset: the Service asks for it, ${notPossible}`;
  return resetsDeparted ? 'their connections get a TCP reset' : undefined;
}

/** The packet and its way to this node. */
export function packetText({ packet, nodeName, mode }: ExplanationReport): string {
  const { protocol, source, destination, port, origin } = packet;
  const way = origin === 'node' ? 'sent by the node itself' : arrivalText(origin.interface);
  return `${protocol} from ${source} to ${joinHostPort(destination, port)}, ${way}; node ${nodeName}, ${mode} mode`;
}

function arrivalText(name: string): string {
  return name === '' ? 'arriving on an unknown interface' : `arriving on ${name}`;
}

/** The fate in one sentence: for a client that is bound to an endpoint, that endpoint. */
export function headline(report: ExplanationReport): string {
  const { service, fate } = report.planned;
  const bound = boundBy(report);
  if (!bound) return fateText(fate, service);
  const { endpoint, secondsLeft } = bound;
  const of = service === null ? '' : ` of ${service}`;
  const left = spanText(secondsLeft * 1000);
  return `Forwarded to ${endpoint}${of}: client affinity binds ${report.packet.source} to it for another ${left}.`;
}

/** The endpoint that the client is bound to, unless the kernel differs from the plan. */
export function boundBy({ kernel, differences }: ExplanationReport): Binding | undefined {
  return differences.length === 0 ? kernel?.bound : undefined;
}

/** What later packets of the connection skip; undefined when they take the same way as this one. */
export function laterPacketsText({ kernel }: ExplanationReport): string | undefined {
  const after = kernel?.fastPathAfter;
  if (after === undefined) return undefined;
  return `After ${count(after, 'packet')}, the connection takes the fast path: later packets skip all rules, also those of other programs.`;
}

/** Whether a rule of another program certainly stops the packet. */
export function isStopped({ otherRules }: ExplanationReport): boolean {
  return otherRules?.obstacles.some(({ certainty }) => certainty === 'certain') ?? false;
}

/** The chain that stops a packet, or may stop it, and what in it does. */
export function obstacleText(obstacle: Obstacle): string {
  const { table, chain, causes, causeCount, unclearRules, endpoints, certainty } = obstacle;
  const more = causeCount > causes.length ? ` and ${causeCount - causes.length} more` : '';
  const unclear =
    certainty === 'possible' && unclearRules > 0
      ? `; ${count(unclearRules, 'rule')} could not be evaluated`
      : '';
  const where = endpoints === null ? '' : `, on the way to ${endpoints.join(', ')}`;
  const causesText = causes.map((cause) => causeText(cause, chain)).join(', or ');
  return `table ${table}, chain ${chain}: ${causesText}${more}${unclear}${where}.`;
}

const causeActions = {
  drop: 'drop',
  reject: 'reject',
  unknown: 'a statement that is not understood',
} as const;

function causeText({ action, chain, handle, comment }: ObstacleCause, base: string): string {
  if (handle === null) return `policy ${action}`;
  const inChain = chain === base ? '' : ` of chain ${chain}`;
  const said = comment === null ? '' : ` (${JSON.stringify(comment)})`;
  return `${causeActions[action]} by the rule with handle ${handle}${inChain}${said}`;
}

/** What a chain of another program does with a packet. */
export const chainEffects = { none: 'lets it pass', possible: 'MAY STOP IT', certain: 'STOPS IT' } as const;

export function chainText({ table, chain, hook, priority, policy }: OtherChain): string {
  return `table ${table}, chain ${chain} (hook ${hook}, priority ${priority}, policy ${policy})`;
}

/** The fate in one sentence. */
export function fateText(fate: Fate, service: string | null = null): string {
  if (fate.action !== 'forward') return refusals[fate.action];
  const { targets, affinitySeconds } = fate;
  const [first] = targets;
  const where =
    first && targets.length === 1 ? first.endpoint : `one of ${count(targets.length, 'endpoint')}`;
  const of = service === null ? '' : ` of ${service}`;
  const sticky =
    affinitySeconds > 0 ? `, and for ${spanText(affinitySeconds * 1000)} always the same one` : '';
  return `Forwarded to ${where}${of}${sticky}.`;
}

const refusals = {
  drop: 'Dropped: the sender gets no answer.',
  reject: 'Rejected: the sender gets an error at once.',
  pass: 'Ignored: the packet is routed as if there were no proxy.',
} as const;

/** What the endpoint sees as the source of a connection. */
export function seenText({ masquerade }: Target): string {
  return masquerade ? 'an address of the node' : 'the address of the client';
}
