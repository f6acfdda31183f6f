import { formatVirtualServer, type VirtualServer, virtualServerFlags } from '../../kernel/ipvs/objects.ts';
import type { Family } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import type { IpvsSettings } from './settings.ts';

/** A whole address, as the kernel takes it: a mask for IPv4, a prefix length for IPv6. */
const netmasks: Readonly<Record<Family, number>> = { IPv4: 0xffffffff, IPv6: 128 };

/** The virtual server of a service port at one address. Persistence goes by the client's whole address. */
export function virtualServer(
  { family, scheduler }: Pick<IpvsSettings, 'family' | 'scheduler'>,
  address: string,
  port: number,
  { protocol, affinitySeconds }: { readonly protocol: Protocol; readonly affinitySeconds: number },
): VirtualServer {
  const affinity = affinitySeconds > 0 ? virtualServerFlags.persistent : 0;
  const maglev = scheduler === 'mh' ? virtualServerFlags.mhPort : 0;
  return {
    address,
    port,
    protocol,
    scheduler,
    flags: affinity | maglev,
    timeout: affinitySeconds,
    netmask: netmasks[family],
  };
}

/** Whether a virtual server needs no change. What upstream does not compare, the netmask, is not compared here. */
export function sameServer(a: VirtualServer, b: VirtualServer): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.timeout === b.timeout &&
    a.flags === b.flags &&
    formatVirtualServer(a) === formatVirtualServer(b)
  );
}
