import { zones } from '../contract/objects.ts';
import type { EndpointPlace, EndpointSpec, ServiceSpec } from '../contract/story.ts';
import type { Dice } from './dice.ts';

const places: readonly EndpointPlace[] = ['A', 'B', 'C', 'D', 'node'];
const everywhere = { nodePort: true, external: true, loadBalancer: true } as const;

/** Both protocols, always: connections of either kind go to every service. */
const protocols = ['TCP', 'UDP'] as const;

/** A service with random addresses, policies and endpoints. */
export function randomService(dice: Dice): ServiceSpec {
  return {
    protocols,
    ...(dice.isLucky(0.7) && everywhere),
    ...(dice.isLucky(0.2) && { internalPolicy: 'Local' }),
    ...(dice.isLucky(0.3) && { externalPolicy: 'Local' }),
    ...(dice.isLucky(0.2) && { affinitySeconds: 600 }),
    ...(dice.isLucky(0.15) && { ranges: ['clients'] }),
    ...(dice.isLucky(0.1) && { families: [dice.pick(['IPv4', 'IPv6'])] }),
    endpoints: randomEndpoints(dice),
  };
}

/** Mostly some that are ready; sometimes none, hinted ones, or some that do not serve. */
export function randomEndpoints(dice: Dice): readonly EndpointSpec[] {
  if (dice.isLucky(0.08)) return [];
  const isHinted = dice.isLucky(0.15);
  const chosen = dice.some(places);
  return (chosen.length > 0 ? chosen : [dice.pick(places)]).map((at) => ({
    at,
    ...(dice.isLucky(0.2) && { state: dice.pick(['draining', 'gone', 'unready']) }),
    ...(isHinted && { zoneHints: [dice.pick(Object.values(zones))] }),
  }));
}
