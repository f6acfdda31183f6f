import type { ProxyConfig } from '../../config/types.ts';
import type { IpvsClient } from '../../kernel/ipvs/client.ts';
import type { IpvsTimeouts } from '../../kernel/ipvs/objects.ts';
import { SECOND } from '../../lib/duration.ts';
import type { Logger } from '../../obs/log.ts';

const maxSeconds = 0xffffffff;

/** The timeouts of connections in whole seconds, 0 where none is configured; undefined when none is at all. */
export function timeoutsOf({ ipvs }: Pick<ProxyConfig, 'ipvs'>): IpvsTimeouts | undefined {
  const { tcpTimeout, tcpFinTimeout, udpTimeout } = ipvs;
  if (tcpTimeout <= 0n && tcpFinTimeout <= 0n && udpTimeout <= 0n) return undefined;
  return { tcp: seconds(tcpTimeout), tcpFin: seconds(tcpFinTimeout), udp: seconds(udpTimeout) };
}

/** Sets the configured timeouts. On failure logs, and the kernel's timeouts stay in force. */
export async function setTimeouts(
  client: Pick<IpvsClient, 'setTimeouts'>,
  config: Pick<ProxyConfig, 'ipvs'>,
  logger: Logger,
): Promise<void> {
  const timeouts = timeoutsOf(config);
  if (!timeouts) return;
  try {
    await client.setTimeouts(timeouts);
  } catch (error) {
    logger.error(error, 'Failed to set the timeouts of IPVS', { ...timeouts });
  }
}

function seconds(duration: bigint): number {
  return Math.min(maxSeconds, Number(duration / SECOND));
}
