import type { Clock } from '../../lib/clock.ts';
import { loadLibc } from '../../native/koffi-libc.ts';
import { type IpsetClient, openIpsetClient } from '../ipset/client.ts';
import { AddressBook } from '../route/address-book.ts';
import { openRouteClient, type RouteClient } from '../route/client.ts';
import { type DummyDevices, openDummyDevices } from '../route/dummy-device.ts';
import { type IpvsClient, openIpvsClient } from './client.ts';

/** Opens the kernel interfaces of ipvs mode in this network namespace, each with a socket of its own. */
export interface IpvsOpeners {
  /** Rejects with IpvsUnavailableError when the kernel has no IPVS. */
  ipvs(): Promise<IpvsClient>;
  sets(): IpsetClient;
  devices(): DummyDevices;
  route(): RouteClient;
  addresses(): AddressBook;
}

export async function ipvsOpeners(clock: Clock): Promise<IpvsOpeners> {
  const libc = await loadLibc();
  return {
    ipvs: () => openIpvsClient(libc, { clock }),
    sets: () => openIpsetClient(libc, { clock }),
    devices: () => openDummyDevices(libc, { clock }),
    route: () => openRouteClient(libc, { clock }),
    addresses: () => AddressBook.open(libc, { clock }),
  };
}
