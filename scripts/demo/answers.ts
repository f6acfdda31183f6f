import type { RunningProxy, Substitute } from './proxy.ts';
import { askRepeatedly } from './requests.ts';
import type { Endpoint, Frontend, Shop } from './shop.ts';
import type { Stage } from './stage.ts';

/** More addresses are not asked: nobody could read the answers. */
const maxFrontends = 50;

/** Shows who answers at each address, and a note where nothing is asked. */
export async function showAnswers(shop: Shop, stage: Stage, proxy: RunningProxy): Promise<void> {
  const frontends = shop.frontends(stage.nodeIPs);
  const endpoints = Map.groupBy(shop.endpoints(), ({ service }) => service);
  const rows = await Promise.all(
    frontends.slice(0, maxFrontends).map(async (frontend) => {
      const own = (endpoints.get(frontend.service) ?? []).filter(({ ip }) => isSameFamily(ip, frontend));
      const { address = frontend.address, note } = placeOf(frontend, own, stage, proxy);
      const answers = note === undefined ? await askRepeatedly(address, frontend.protocol) : note;
      const protocol = frontend.protocol === 'TCP' ? '' : `/${frontend.protocol}`;
      const comment = note === undefined && own.length === 0 ? '  (no endpoints)' : '';
      return [frontend.title, `${address}${protocol}`, `${answers}${comment}`] as const;
    }),
  );
  const [titles, addresses] = [0, 1].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  for (const [title, address, answers] of rows) {
    console.log(`${title.padEnd(titles ?? 0)}  ${address.padEnd(addresses ?? 0)}  ${answers}`);
  }
  if (frontends.length > maxFrontends) console.log(`${frontends.length - maxFrontends} more are not asked`);
  console.log('');
}

function isSameFamily(ip: string, { address }: Frontend): boolean {
  return ip.includes(':') === address.startsWith('[');
}

/** Where a frontend is asked: at its own address, unless the proxy logged another one. The note says why it is not. */
function placeOf(
  { name, address, protocol }: Frontend,
  endpoints: readonly Endpoint[],
  { hasOwnNetwork, canHold }: Stage,
  proxy: RunningProxy,
): Partial<Substitute> {
  const substitute = proxy.substitute(name, address);
  const place = substitute?.address ?? address;
  const foreign = endpoints.find(({ ip }) => !canHold(ip));
  if (protocol === 'SCTP') return { address: place, note: 'not asked: SCTP' };
  if (substitute && substitute.address === undefined) return { address, note: substitute.note };
  if (!substitute && !hasOwnNetwork) return { address, note: 'not served yet' };
  if (foreign && !hasOwnNetwork) return { address: place, note: `not asked: ${foreign.ip} has no stand-in` };
  return { address: place };
}
