import type { ProxyConfig } from '../../config/types.ts';
import type { Choice } from '../../forwarder/balancer.ts';
import { type PortRange, parsePortRange } from '../../forwarder/port-pool.ts';
import { parseDuration, toMillis } from '../../lib/duration.ts';
import { messageOf } from '../../lib/thrown.ts';

/** What the configuration says about this mode alone. */
export interface UserspaceOptions {
  readonly portRange: PortRange | undefined;
  readonly udpIdleMs: number;
  readonly choice: Choice;
}

const defaultUDPIdleMs = 250;

/** Reads them; throws, naming field and value, when one cannot be used. */
export function userspaceOptions({
  userspace,
  ipvs,
}: Pick<ProxyConfig, 'userspace' | 'ipvs'>): UserspaceOptions {
  return {
    portRange: named('portRange', () => parsePortRange(userspace?.portRange ?? '')),
    udpIdleMs: named('udpIdleTimeout', () => udpIdle(userspace?.udpIdleTimeout ?? '')),
    choice: ipvs.scheduler === 'lc' ? 'least-connections' : 'round-robin',
  };
}

function udpIdle(text: string): number {
  if (text === '') return defaultUDPIdleMs;
  const ms = toMillis(parseDuration(text));
  if (ms <= 0) throw new Error(`Invalid value: ${JSON.stringify(text)}: must be greater than 0`);
  return ms;
}

function named<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${field}: ${messageOf(error)}`, { cause: error });
  }
}
