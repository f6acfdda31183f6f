import type { BindingSink, ClientBinding } from '../backends/inspection.ts';
import { canonicalIP, cidrContains, type Family, parseCIDR, parseIP } from '../model/ip.ts';
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

/** Keeps those bindings of one family that have the most time left, and counts the others. */
export class LongestBindings implements BindingSink {
  readonly #family: Family;
  readonly #question: AffinityQuestion;
  #kept: AffinityItem[] = [];
  #found = 0;

  constructor(family: Family, question: AffinityQuestion) {
    this.#family = family;
    this.#question = question;
  }

  /** How many bindings were asked for, and found. */
  get found(): number {
    return this.#found;
  }

  get items(): readonly AffinityItem[] {
    return longest(this.#kept, this.#question.limit);
  }

  add(binding: ClientBinding): void {
    const { isWanted, limit } = this.#question;
    if (!isWanted(binding)) return;
    const { service, client, endpoint, secondsLeft, frontend = null } = binding;
    this.#found++;
    this.#kept.push({ service, family: this.#family, client, endpoint, secondsLeft, frontend });
    // Sorting only now and then keeps the time per binding and the memory small.
    if (this.#kept.length >= 2 * limit) this.#kept = longest(this.#kept, limit);
  }

  clear(): void {
    this.#kept = [];
    this.#found = 0;
  }
}

/** The items with the most time left, in this order. */
export function longest(items: readonly AffinityItem[], limit: number): AffinityItem[] {
  return items
    .toSorted((a, b) => b.secondsLeft - a.secondsLeft || (a.client < b.client ? -1 : 1))
    .slice(0, limit);
}
