import type { Endpoint } from '../model/endpoint.ts';
import type { Frontend } from '../plan/frontend.ts';
import type { Decision, ServicePlan } from '../plan/service-plan.ts';
import { type Sending, senderOf } from './node-facts.ts';
import type { Choice, Outcome } from './outcome.ts';

/** As plans have it. */
export function choiceByPlan(frontend: Frontend, sending: Sending): Choice | Outcome {
  const { plan, outside, nearEndpoints } = frontend;
  const sender = senderOf(sending);
  if (nearEndpoints === undefined || sender === 'other') return decided(plan, outside);
  const who = sender === 'pod' ? `a pod (${sending.reason})` : 'this node itself';
  return forward(plan[nearEndpoints], [
    `externalTrafficPolicy is Local, but that binds clients from outside only: the sender is ${who} and may reach every endpoint that policy Cluster would use.`,
    ...topologyReasons(plan),
  ]);
}

/** As virtual servers have it: there is one list for each, whoever sends, and without any endpoint they reject. */
export function choiceByVirtualServer({
  plan,
  outside: decision,
  nearEndpoints,
}: Frontend): Choice | Outcome {
  if (decision.action !== 'drop') return decided(plan, decision);
  if (nearEndpoints) {
    const how = 'In ipvs mode the endpoints of policy Cluster stand in.';
    return forward(plan[nearEndpoints], [sentence(decision.reason), how, ...topologyReasons(plan)]);
  }
  return {
    action: 'reject',
    reasons: [sentence(decision.reason), 'A virtual server without endpoints rejects.'],
  };
}

/** Words as plans have them, made a sentence. */
export function sentence(words: string): string {
  return `${words}.`.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
}

function decided(plan: ServicePlan, decision: Decision): Choice | Outcome {
  const reasons = [sentence(decision.reason)];
  if (decision.action !== 'forward') return { action: decision.action, reasons };
  const isNarrowed = decision.endpoints === 'cluster';
  return forward(plan[decision.endpoints], isNarrowed ? [...reasons, ...topologyReasons(plan)] : reasons);
}

function forward(endpoints: readonly Endpoint[], reasons: readonly string[]): Choice {
  return { action: 'forward', endpoints, reasons };
}

function topologyReasons({ topology }: ServicePlan): string[] {
  return topology.mode === 'none' ? [] : [`${sentence(topology.reason).slice(0, -1)} (${topology.mode}).`];
}
