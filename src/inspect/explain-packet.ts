import type { Fate, Packet, Target } from '../backends/inspection.ts';
import { isInRange, isOwnAddress, type NodeFacts, type Sender, senderOf } from '../backends/node-facts.ts';
import {
  choiceOf,
  type DestinationMatches,
  type DirectService,
  type EndpointChoice,
  foretoldBalance,
  type NotForwarded,
  type PacketRules,
} from '../backends/packet-rules.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { Balance } from '../model/service-port.ts';
import type { Frontend } from '../plan/frontend.ts';
import { compareClaims, precedenceOf } from '../plan/ownership.ts';
import { whyNoHash } from '../plan/reasons.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import { sharesOf } from '../plan/shares.ts';
import { rangeOfNode } from '../plan/source-ranges.ts';
import { type Listened, listenedAt, notCaptured } from './explain-direct.ts';
import { matchesOf, ownerFirst } from './matches.ts';

/** The fate of the first packet of a connection by the plans, and why. */
export interface Explanation {
  /** Key of the service port that has the destination. */
  readonly service: string | undefined;
  /** In words: `cluster IP 10.96.0.1:80/TCP`. */
  readonly frontend: string | undefined;
  readonly fate: Fate;
  /** Sentences, in the order of the decisions. */
  readonly reasons: readonly string[];
  /** The packet is dropped because its source is in none of the admitted ranges. */
  readonly isFiltered?: true;
}

type Result = Pick<Explanation, 'fate' | 'reasons' | 'isFiltered'>;

/** Foretells the fate of a packet on this node in the mode of these rules. Pure; looks at every plan once. */
export function explainPacket(
  packet: Packet,
  plans: ReadonlyMap<string, ServicePlan>,
  node: NodeFacts,
  rules: PacketRules,
): Explanation {
  const matches = matchesOf(packet, plans);
  const claims = claimsOn(packet, matches, node);
  const direct = rules.direct?.();
  if (direct) {
    const listened = listenedAt(packet, plans, node, direct);
    if (listened) return explainListener(listened, packet, node, rules);
    return explainUncaptured(packet, claims[0], direct);
  }
  const [frontend] = claims;
  if (!frontend) {
    const result = unmatched(packet, rules.unmatched(packet, matches, node));
    return { service: undefined, frontend: undefined, ...result };
  }
  const { key: service } = frontend.plan.port;
  const name = frontendText(frontend, packet);
  const result = resultFor(frontend, packet, node, rules);
  const start = [`The packet is for ${name} of service port ${service}.`, ...losers(claims)];
  return { service, frontend: name, ...result, reasons: [...start, ...result.reasons] };
}

function explainListener(
  { frontend, address }: Listened,
  packet: Packet,
  node: NodeFacts,
  rules: PacketRules,
): Explanation {
  const { key: service } = frontend.plan.port;
  const name = `${frontend.kind} ${frontend.name}`;
  const { fate, reasons } = forwardResult(frontend, packet, node, {
    ...rules,
    choose: ({ outside, plan }) => choiceOf(outside, plan),
  });
  const start = `kube-proxy listens at ${address} for ${name} of service port ${service}.`;
  return { service, frontend: name, fate, reasons: [start, ...reasons] };
}

function explainUncaptured(
  packet: Packet,
  frontend: Frontend | undefined,
  direct: DirectService,
): Explanation {
  if (!frontend) {
    return { service: undefined, frontend: undefined, ...unmatched(packet, undefined) };
  }
  const { key: service } = frontend.plan.port;
  const name = frontendText(frontend, packet);
  const reasons = [`The packet is for ${name} of service port ${service}.`, ...notCaptured(frontend, direct)];
  return { service, frontend: name, ...notForwarded({ action: 'pass', reasons }) };
}

/** An address of a service comes before a node port, even when it refuses the packet. */
function claimsOn({ destination }: Packet, matches: DestinationMatches, node: NodeFacts): Frontend[] {
  const { addresses, nodePorts } = matches;
  if (addresses.length > 0) return ownerFirst(addresses);
  return isOwnAddress(destination, node) ? ownerFirst(nodePorts) : [];
}

/** `cluster IP 10.96.0.1:80/TCP`, `node port 30080/TCP at 192.0.2.5`. */
function frontendText({ kind, name, port, protocol }: Frontend, { destination }: Packet): string {
  return kind === 'node port' ? `node port ${port}/${protocol} at ${destination}` : `${kind} ${name}`;
}

function unmatched({ destination, port, protocol }: Packet, refusal: NotForwarded | undefined): Result {
  if (refusal) return notForwarded(refusal);
  const nothing = `No service has port ${port}/${protocol} at ${destination}: the packet is routed as if there were no proxy.`;
  return notForwarded({ action: 'pass', reasons: [nothing] });
}

/** A sentence for each service port that claims the destination without owning it. */
function losers(claims: readonly Frontend[]): string[] {
  const [owner, ...others] = Map.groupBy(claims, ({ plan }) => plan.port.key).values();
  return others.map((claim) => {
    const why = precedenceOf(strongest(owner ?? claim), strongest(claim));
    return `Service port ${strongest(claim).plan.port.key} claims the same destination and does not get it: ${why}.`;
  });
}

function strongest(claims: readonly Frontend[]): Frontend {
  return claims.reduce((best, claim) => (compareClaims(claim, best) < 0 ? claim : best));
}

function resultFor(frontend: Frontend, packet: Packet, node: NodeFacts, rules: PacketRules): Result {
  const { plan, kind } = frontend;
  const notServed = kind === 'node port' ? rules.nodePort(frontend, packet, node) : undefined;
  if (notServed) return notForwarded(notServed);
  const reasons: string[] = [];
  if (rules.checksSource(frontend, packet)) {
    const admitted = admission(plan, packet, node);
    if (admitted === undefined) return { ...notForwarded(notAdmitted(plan, packet)), isFiltered: true };
    reasons.push(admitted);
  }
  const result = forwardResult(frontend, packet, node, rules);
  return { ...result, reasons: [...reasons, ...result.reasons] };
}

/** The endpoints that the packet may go to, or why it is refused. */
function forwardResult(frontend: Frontend, packet: Packet, node: NodeFacts, rules: PacketRules): Result {
  const { plan } = frontend;
  const reasons: string[] = [];
  const sender = senderOf(packet, node);
  const choice = rules.choose(frontend, sender, packet);
  reasons.push(...choice.reasons);
  if (choice.action !== 'forward') {
    const miss = rules.missesRefusal?.(frontend, packet, node);
    if (miss !== undefined) return notForwarded({ action: 'pass', reasons: [...reasons, miss] });
    return notForwarded({ action: choice.action, reasons });
  }
  const { targets, reasons: sources } = targetsOf(choice, frontend, packet, sender, node, rules);
  reasons.push(...choiceReasons(choice, plan, targets, rules), ...sources);
  return { fate: { action: 'forward', targets, affinitySeconds: plan.port.affinitySeconds }, reasons };
}

/** Why the source may reach the frontend; undefined when it may not. */
function admission({ port }: ServicePlan, { source }: Packet, { nodeIP }: NodeFacts): string | undefined {
  const range = port.sourceRanges.find((text) => isInRange(source, text));
  if (range !== undefined) return `Source ${source} is in the admitted range ${range}.`;
  const ofNode = rangeOfNode(port, nodeIP);
  if (ofNode === undefined || !port.loadBalancerVIPs.includes(source)) return undefined;
  return `Source ${source} is the balancer's own address, which this node may use since ${nodeIP} is in the admitted range ${ofNode}.`;
}

function notAdmitted({ port }: ServicePlan, { source }: Packet): NotForwarded {
  const ranges = port.sourceRanges.join(', ');
  return { action: 'drop', reasons: [`Source ${source} is in none of the admitted ranges (${ranges}).`] };
}

/** Every endpoint with its probability, and whether it sees the client's address. */
function targetsOf(
  { endpoints }: EndpointChoice,
  frontend: Frontend,
  packet: Packet,
  sender: Sender,
  node: NodeFacts,
  rules: PacketRules,
): { readonly targets: readonly Target[]; readonly reasons: readonly string[] } {
  const { masquerade, reason } = rules.masquerade(frontend, packet, node, sender);
  const keepsSource = ({ ip }: Endpoint): boolean =>
    rules.keepsSourceForOwnEndpoints && packet.origin !== 'node' && isOwnAddress(ip, node);
  const isMasqueraded = (endpoint: Endpoint): boolean =>
    !keepsSource(endpoint) && (masquerade || rules.isHairpin(endpoint, packet));
  const shares = sharesOf(
    endpoints.map(({ id }) => id),
    foretoldBalance(frontend.plan, rules),
    packet.source,
  );
  const targets = endpoints.flatMap((endpoint, index): Target[] => {
    const probability = shares[index] ?? 0;
    return probability > 0
      ? [{ endpoint: endpoint.id, probability, masquerade: isMasqueraded(endpoint) }]
      : [];
  });
  const reasons = [reason];
  if (!masquerade && targets.some((target) => target.masquerade)) {
    reasons.push(`Still masqueraded where the pod ${packet.source} is sent back to itself.`);
  }
  if (masquerade && targets.some((target) => !target.masquerade)) {
    reasons.push(
      'Still not masqueraded where the endpoint has an address of this node: the packet stays here.',
    );
  }
  return { targets, reasons };
}

const refusals = {
  drop: ['Dropped: the client gets no answer.'],
  reject: ['Rejected: the client gets the error that the port is unreachable.'],
  pass: [],
} as const;

function notForwarded({ action, reasons }: NotForwarded): Result {
  return { fate: { action }, reasons: [...reasons, ...refusals[action]] };
}

function choiceReasons(
  { endpoints }: EndpointChoice,
  plan: ServicePlan,
  targets: readonly Target[],
  rules: PacketRules,
): string[] {
  const { port, balance } = plan;
  const [only, ...others] = targets;
  const scheduler = rules.scheduler === undefined ? '' : ` The scheduler ${rules.scheduler} chooses.`;
  const isSticky = port.affinitySeconds > 0 && endpoints.length > 1;
  const goes = isSticky ? 'A client that is not known goes' : 'Goes';
  const how = balance === 'default' ? `all equally likely.${scheduler}` : hashText(balance, rules);
  const isChosen = only !== undefined && others.length === 0;
  const where = isChosen ? only.endpoint : `one of ${endpoints.length} endpoints`;
  const chosen = endpoints.length === 1 && isChosen ? `Goes to ${where}.` : `${goes} to ${where}, ${how}`;
  const missing = whyNoHash(plan);
  const reasons = missing === undefined ? [chosen] : [chosen, `No hash: ${missing}.`];
  if (port.affinitySeconds === 0) return reasons;
  const affinity = `Client affinity: a client that connected within the last ${port.affinitySeconds} s goes to the same endpoint again.`;
  return [affinity, ...reasons];
}

function hashText(balance: Exclude<Balance, 'default'>, { hashScheduler }: PacketRules): string {
  const by = balance === 'hash' ? "the client's address and port" : "the client's address";
  const whose =
    hashScheduler === undefined ? 'the same one on every node' : `the scheduler ${hashScheduler} chooses`;
  return `by a hash of ${by}: ${whose}.`;
}
