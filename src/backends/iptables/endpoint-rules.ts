import type { Endpoint } from '../../model/endpoint.ts';
import type { ServiceNames } from './names.ts';

/** What the rules for the endpoints of one service port have in common. */
export interface EndpointContext {
  readonly names: ServiceNames;
  /** The chain of each endpoint that may be chosen. */
  readonly chains: ReadonlyMap<Endpoint, string>;
  /** 0 = none. */
  readonly affinitySeconds: number;
  readonly comments: boolean;
}

/** Sends a client back to the endpoint it knows, under affinity, and others to one drawn at random. */
export function balancingRules(
  chain: string,
  endpoints: readonly Endpoint[],
  { names, chains, affinitySeconds, comments }: EndpointContext,
): string[] {
  const head = ({ id }: Endpoint) =>
    comments ? `-A ${chain} -m comment --comment "${names.name} -> ${id}"` : `-A ${chain}`;
  const rules: string[] = [];
  if (affinitySeconds > 0) {
    for (const endpoint of endpoints) {
      const to = chains.get(endpoint);
      rules.push(
        `${head(endpoint)} -m recent --name ${to} --rcheck --seconds ${affinitySeconds} --reap -j ${to}`,
      );
    }
  }
  let left = endpoints.length;
  for (const endpoint of endpoints) {
    const chance = left > 1 ? ` -m statistic --mode random --probability ${probabilityText(left)}` : '';
    rules.push(`${head(endpoint)}${chance} -j ${chains.get(endpoint)}`);
    left--;
  }
  return rules;
}

/** Rewrites the destination; masquerades what an endpoint sends to itself, or it would answer itself directly. */
export function destinationRules({ names, chains, affinitySeconds, comments }: EndpointContext): string[] {
  const { name, protocol } = names;
  const comment = comments ? ` -m comment --comment ${name}` : '';
  const rules: string[] = [];
  for (const [endpoint, chain] of chains) {
    const remember = affinitySeconds > 0 ? ` -m recent --name ${chain} --set` : '';
    rules.push(
      `-A ${chain}${comment} -s ${endpoint.ip} -j KUBE-MARK-MASQ`,
      `-A ${chain}${comment}${remember} -m ${protocol} -p ${protocol} -j DNAT --to-destination ${endpoint.id}`,
    );
  }
  return rules;
}

/** One in n, to ten decimals, an exact half rounded to the even digit: of all n, only 2048 makes one. */
export function probabilityText(n: number): string {
  return n === 2048 ? '0.0004882812' : (1 / n).toFixed(10);
}
