import type { NftClient } from '../../kernel/nft/client.ts';
import { isNotFound } from '../../kernel/nft/errors.ts';
import { type Family, formatIP, joinHostPort } from '../../model/ip.ts';
import { distinctFrontends } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { BindingSink } from '../inspection.ts';
import { type Bytes, fromArray, readWord, toArray } from './bytes.ts';
import { decodeKey, decodeValue } from './element-codec.ts';
import { keyOf } from './frontends.ts';
import { type SetName, setRef } from './layout.ts';

type Reader = Pick<NftClient, 'listElements'>;

/** The part of a number that names the service; the rest names a list or a member. */
const serviceOf = (number: number) => number >>> 16;

/** Reads the records of client affinity. A record whose endpoint is gone binds nobody, and is left out. */
export async function readBindings(
  client: Reader,
  family: Family,
  plans: readonly ServicePlan[],
  sink: BindingSink,
): Promise<void> {
  try {
    const services = await readServices(client, family, plans);
    const endpoints = await readEndpoints(client, family);
    const onElements: Parameters<Reader['listElements']>[1] = (elements, restarted) => {
      if (restarted) sink.clear();
      for (const { key, data, expiresMs } of elements) {
        if (!data || expiresMs === undefined) continue;
        const service = services.get(serviceOf(readWord(fromArray(key.subarray(0, 4)))));
        const endpoint = endpoints.get(readWord(fromArray(data)));
        if (service === undefined || endpoint === undefined) continue;
        const address = formatIP({ family, bytes: key.subarray(4) });
        sink.add({ service, client: address, endpoint, secondsLeft: Math.round(expiresMs / 1000) });
      }
    };
    await client.listElements(setRef(family, 'clients'), onElements, { isApproximate: true });
  } catch (error) {
    // The sets exist from the first service with client affinity on.
    if (!isNotFound(error)) throw error;
  }
}

/** The key of each service port, by its number in the records. */
async function readServices(
  client: Reader,
  family: Family,
  plans: readonly ServicePlan[],
): Promise<ReadonlyMap<number, string>> {
  const owners = new Map<Bytes, string>();
  for (const plan of plans) {
    for (const frontend of distinctFrontends(plan)) owners.set(keyOf(frontend), plan.port.key);
  }
  const services = new Map<number, string>();
  for (const set of ['sticky-services', 'sticky-nodeports'] as const) {
    for (const [frontend, number] of await readMap(client, family, set)) {
      const owner = owners.get(frontend);
      if (owner !== undefined) services.set(serviceOf(readWord(number)), owner);
    }
  }
  return services;
}

/** The endpoint of each member number. */
async function readEndpoints(client: Reader, family: Family): Promise<ReadonlyMap<number, string>> {
  const endpoints = new Map<number, string>();
  for (const set of ['sticky-members', 'sticky-local-members'] as const) {
    for (const [number, target] of await readMap(client, family, set)) {
      endpoints.set(readWord(number), endpointOf(target, family));
    }
  }
  return endpoints;
}

/** A target is an address, and a port in a word of its own. */
function endpointOf(target: Bytes, family: Family): string {
  const bytes = toArray(target);
  const [high = 0, low = 0] = bytes.subarray(-4);
  return joinHostPort(formatIP({ family, bytes: bytes.subarray(0, -4) }), (high << 8) | low);
}

async function readMap(client: Reader, family: Family, set: SetName): Promise<ReadonlyMap<Bytes, Bytes>> {
  const found = new Map<Bytes, Bytes>();
  await client.listElements(setRef(family, set), (elements, restarted) => {
    if (restarted) found.clear();
    for (const element of elements) found.set(decodeKey(element), decodeValue(element));
  });
  return found;
}
