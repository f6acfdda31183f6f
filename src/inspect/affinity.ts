import type { BindingSink, ClientBinding } from '../backends/inspection.ts';
import { canonicalIP, cidrContains, parseCIDR, parseIP } from '../model/ip.ts';
import type { Placements } from '../model/placement.ts';
import type { FamilyView } from './family-view.ts';
import { QuestionError } from './question.ts';
import { type Selector, selectorParameters } from './selection.ts';
import { addressFilter } from './traffic.ts';
import type { AffinityItem } from './traffic-api.ts';

export const affinityParameters = [...selectorParameters, 'client', 'endpoint', 'limit'] as const;

export interface AffinityQuestion extends Selector {
  readonly isWanted: (binding: ClientBinding) => boolean;
  /** The most items of an answer. */
  readonly limit: number;
}

const defaultLimit = 1000;
const maxLimit = 10_000;

/** Throws a QuestionError that names the field and the value. */
export function readAffinityQuestion(read: (name: string) => string | null): AffinityQuestion {
  const text = (name: string) => read(name) ?? '';
  const isOfClient = clientFilter(text('client'));
  const isToEndpoint = addressFilter('endpoint', text('endpoint')) ?? (() => true);
  return {
    name: text('name'),
    namespace: text('namespace'),
    isWanted: ({ client, endpoint }) => isOfClient(client) && isToEndpoint(endpoint),
    limit: readLimit(text('limit')),
  };
}

function readLimit(text: string): number {
  if (text === '') return defaultLimit;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= maxLimit) return limit;
  throw new QuestionError(`limit ${JSON.stringify(text)} is no number from 1 to ${maxLimit}`);
}

/** Whether a client has this address, or one in this range. */
function clientFilter(text: string): (client: string) => boolean {
  if (text === '') return () => true;
  const wanted = canonicalIP(text.replace(/^\[(.*)\]$/, '$1'));
  if (wanted !== undefined) return (client) => client === wanted;
  const range = parseCIDR(text);
  if (!range) throw new QuestionError(`client ${JSON.stringify(text)} is no address or range`);
  return (client) => {
    const ip = parseIP(client);
    return ip !== undefined && cidrContains(range, ip);
  };
}

/** A binding as it is kept while others are read. */
type KeptBinding = Omit<AffinityItem, 'pod'>;

/** Keeps those bindings of one family that have the most time left, and counts the others. */
export class LongestBindings implements BindingSink {
  readonly #view: BoundFamily;
  readonly #question: AffinityQuestion;
  #kept: KeptBinding[] = [];
  #found = 0;

  constructor(view: BoundFamily, question: AffinityQuestion) {
    this.#view = view;
    this.#question = question;
  }

  /** How many bindings were asked for, and found. */
  get found(): number {
    return this.#found;
  }

  get items(): readonly AffinityItem[] {
    const podOf = podFinder(this.#view);
    return longest(this.#kept, this.#question.limit).map((item) => ({ ...item, pod: podOf(item) }));
  }

  add(binding: ClientBinding): void {
    const { isWanted, limit } = this.#question;
    if (!isWanted(binding)) return;
    const { service, client, endpoint, secondsLeft, frontend = null } = binding;
    const { family } = this.#view;
    this.#found++;
    this.#kept.push({ service, family, client, endpoint, secondsLeft, frontend });
    // Sorting only now and then keeps the time per binding and the memory small.
    if (this.#kept.length >= 2 * limit) this.#kept = longest(this.#kept, limit);
  }

  clear(): void {
    this.#kept = [];
    this.#found = 0;
  }
}

type BoundFamily = Pick<FamilyView, 'family' | 'plans' | 'placements'>;

/** Returns a function that finds the pod of an endpoint of a service port; null when it is not known. */
function podFinder(view: BoundFamily): (item: KeptBinding) => string | null {
  const known = new Map<string, Placements | undefined>();
  return ({ service, endpoint }) => {
    const plan = view.plans.get(service);
    if (plan && !known.has(service)) known.set(service, view.placements(plan.port));
    return known.get(service)?.byEndpoint.get(endpoint)?.pod ?? null;
  };
}

/** The items with the most time left, in this order. */
export function longest<Item extends KeptBinding>(items: readonly Item[], limit: number): Item[] {
  return items
    .toSorted((a, b) => b.secondsLeft - a.secondsLeft || (a.client < b.client ? -1 : 1))
    .slice(0, limit);
}
