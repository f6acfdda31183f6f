import type { Fate, Packet, Target } from '../backends/inspection.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { Frontend } from '../plan/frontend.ts';
import { compareClaims, precedenceOf } from '../plan/ownership.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import { frontendText, type Matches, matchesOf, ownerFirst } from './frontends.ts';
import { type ModeRules, modeRules } from './mode-rules.ts';
import { isOwnAddress, type NodeFacts, sendingOf } from './node-facts.ts';
import type { Choice, Outcome } from './outcome.ts';
import { admission, notAdmitted } from './source-ranges.ts';

/** What becomes of the first packet of a connection by the plans, and why. */
export interface Explanation {
  readonly packet: Packet;
  /** Key of the service port that it is for. */
  readonly service: string | undefined;
  /** In words: `cluster IP 10.96.0.1:80/TCP`. */
  readonly frontend: string | undefined;
  readonly fate: Fate;
  /** Sentences, in the order in which things are decided. */
  readonly reasons: readonly string[];
}

/** Says what becomes of a packet on this node. Pure; takes as long as one look at every plan does. */
export function explain(
  packet: Packet,
  plans: ReadonlyMap<string, ServicePlan>,
  node: NodeFacts,
): Explanation {
  const rules = modeRules[node.mode];
  const matches = matchesOf(packet, plans);
  const claims = claimsOn(packet, matches, node);
  const [frontend] = claims;
  if (!frontend) return unmatched(packet, rules.unmatched(packet, matches, node));
  const named = {
    packet,
    service: frontend.plan.port.key,
    frontend: frontendText(frontend, packet),
  };
  const start = [`The packet is for ${named.frontend} of service port ${named.service}.`, ...others(claims)];
  const result = resultFor(frontend, packet, node, rules);
  return { ...named, fate: result.fate, reasons: [...start, ...result.reasons] };
}

type Result = Pick<Explanation, 'fate' | 'reasons'>;

/** Addresses before node ports, whatever becomes of the packet there. */
function claimsOn(packet: Packet, matches: Matches, node: NodeFacts): Frontend[] {
  const { addresses, nodePorts } = matches;
  if (addresses.length > 0) return ownerFirst(addresses);
  return isOwnAddress(packet.destination, node) ? ownerFirst(nodePorts) : [];
}

function unmatched(packet: Packet, outcome: Outcome | undefined): Explanation {
  const { destination, port, protocol } = packet;
  const nothing = `No service has port ${port}/${protocol} at ${destination}: the packet takes the way that it would take without a proxy.`;
  const { fate, reasons } = refused(outcome ?? { action: 'pass', reasons: [nothing] });
  return { packet, service: undefined, frontend: undefined, fate, reasons };
}

/** Several service ports may ask for the same destination; only one has it. */
function others(claims: readonly Frontend[]): string[] {
  const [owner, ...losers] = Map.groupBy(claims, ({ plan }) => plan.port.key).values();
  return losers.map((claim) => {
    const why = precedenceOf(strongest(owner ?? claim), strongest(claim));
    return `Service port ${strongest(claim).plan.port.key} asks for the same destination and does not get it: ${why}.`;
  });
}

function strongest(claims: readonly Frontend[]): Frontend {
  return claims.reduce((best, claim) => (compareClaims(claim, best) < 0 ? claim : best));
}

function resultFor(frontend: Frontend, packet: Packet, node: NodeFacts, rules: ModeRules): Result {
  const { plan, kind } = frontend;
  const elsewhere = kind === 'node port' ? rules.nodePort(frontend, packet, node) : undefined;
  if (elsewhere) return refused(elsewhere);
  const reasons: string[] = [];
  if (rules.testsSource(frontend, packet)) {
    const admitted = admission(plan, packet, node);
    if (admitted === undefined) return refused(notAdmitted(plan, packet));
    reasons.push(admitted);
  }
  const choice = rules.choose(frontend, sendingOf(packet, node));
  reasons.push(...choice.reasons);
  if (choice.action !== 'forward') {
    const miss = rules.missesRefusal?.(frontend, packet, node);
    if (miss !== undefined) return refused({ action: 'pass', reasons: [...reasons, miss] });
    return refused({ action: choice.action, reasons });
  }
  const { targets, reasons: sources } = targetsOf(choice.endpoints, frontend, packet, node, rules);
  reasons.push(...choiceReasons(choice, plan, node), ...sources);
  return { fate: { action: 'forward', targets, affinitySeconds: plan.port.affinitySeconds }, reasons };
}

/** Every endpoint with the same probability, and what source address it sees. */
function targetsOf(
  endpoints: readonly Endpoint[],
  frontend: Frontend,
  packet: Packet,
  node: NodeFacts,
  rules: ModeRules,
): { readonly targets: readonly Target[]; readonly reasons: readonly string[] } {
  const { masquerade, reason } = rules.masquerade(frontend, packet, node, sendingOf(packet, node));
  const isSpared = ({ ip }: Endpoint): boolean =>
    rules.sparesOwnEndpoints && packet.origin !== 'node' && isOwnAddress(ip, node);
  const isMasqueraded = (endpoint: Endpoint): boolean =>
    !isSpared(endpoint) && (masquerade || rules.isHairpin(endpoint, packet));
  const targets = endpoints.map(
    (endpoint): Target => ({
      endpoint: endpoint.id,
      probability: 1 / endpoints.length,
      masquerade: isMasqueraded(endpoint),
    }),
  );
  const reasons = [reason];
  if (!masquerade && targets.some((target) => target.masquerade)) {
    reasons.push(`Masqueraded all the same where the pod ${packet.source} is sent back to itself.`);
  }
  if (masquerade && targets.some((target) => !target.masquerade)) {
    reasons.push(
      'Not masqueraded all the same where the endpoint has an address of this node: the packet stays here.',
    );
  }
  return { targets, reasons };
}

const actions = {
  drop: 'Dropped: the client gets no answer.',
  reject: 'Rejected: the client is told that the port is unreachable.',
} as const;

function refused({ action, reasons }: Outcome): Result {
  return { fate: { action }, reasons: action === 'pass' ? reasons : [...reasons, actions[action]] };
}

function choiceReasons({ endpoints }: Choice, { port }: ServicePlan, { scheduler }: NodeFacts): string[] {
  const by =
    scheduler === undefined || scheduler === '' ? '' : ` Which, is up to the scheduler ${scheduler}.`;
  const [only] = endpoints;
  const chosen =
    endpoints.length === 1 && only
      ? `Goes to ${only.id}.`
      : `Goes to one of ${endpoints.length} endpoints, each as likely as the others.${by}`;
  if (port.affinitySeconds === 0) return [chosen];
  return [
    chosen,
    `Client affinity: a client that connected within the last ${port.affinitySeconds} s goes where it went then.`,
  ];
}
