import { formatVirtualServer, type VirtualServer, virtualServerFlags } from '../../kernel/ipvs/objects.ts';
import type { Family } from '../../model/ip.ts';
import type { Balance } from '../../model/service-port.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { IpvsSettings } from './settings.ts';

/** A whole address, as the kernel takes it: a mask for IPv4, a prefix length for IPv6. */
const netmasks: Readonly<Record<Family, number>> = { IPv4: 0xffffffff, IPv6: 128 };

/** The kernel's scheduler that hashes clients, by Maglev's table. */
export const hashScheduler = 'mh';

/** The virtual server of a service port at one address. Persistence goes by the client's whole address. */
export function virtualServer(
  { family, scheduler }: Pick<IpvsSettings, 'family' | 'scheduler'>,
  address: string,
  port: number,
  plan: Pick<ServicePlan, 'port' | 'balance'>,
): VirtualServer {
  const { protocol, affinitySeconds } = plan.port;
  const affinity = affinitySeconds > 0 ? virtualServerFlags.persistent : 0;
  const chosen = plan.balance === 'default' ? usual(scheduler) : hashed(plan.balance);
  return {
    address,
    port,
    protocol,
    scheduler: chosen.scheduler,
    flags: affinity | chosen.flags,
    timeout: affinitySeconds,
    netmask: netmasks[family],
  };
}

type Scheduling = Pick<VirtualServer, 'scheduler' | 'flags'>;

function usual(scheduler: string): Scheduling {
  return { scheduler, flags: scheduler === hashScheduler ? virtualServerFlags.mhPort : 0 };
}

/** A real server that drains has weight 0 and still has its slots: without the fallback its clients would be refused. */
function hashed(balance: Exclude<Balance, 'default'>): Scheduling {
  const { mhFallback, mhPort } = virtualServerFlags;
  return { scheduler: hashScheduler, flags: balance === 'hash' ? mhFallback | mhPort : mhFallback };
}

/** Whether a hash chooses because the Service asks for that, whatever the usual scheduler. */
export function isHashed({ flags }: VirtualServer): boolean {
  return (flags & virtualServerFlags.mhFallback) !== 0;
}

/** The same virtual server with the scheduler of Services that ask for nothing. */
export function withoutHash(server: VirtualServer, scheduler: string): VirtualServer {
  const plain = usual(scheduler);
  return { ...server, ...plain, flags: (server.flags & virtualServerFlags.persistent) | plain.flags };
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
