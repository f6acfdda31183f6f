import { deviceName } from '../backends/ipvs/kernel.ts';
import type { Mode } from '../backends/mode.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';

/**
 * The one place where modes plug in. Each mode is loaded only when it is used. Clean-up follows this order: ipvs mode
 * empties chains that rules of iptables mode still lead to, and iptables mode then removes them.
 */
const modes: Record<ProxyMode, () => Promise<Mode>> = {
  ipvs: async () => (await import('../backends/ipvs/mode.ts')).ipvsMode,
  iptables: async () => (await import('../backends/iptables/mode.ts')).iptablesMode,
  nftables: async () => (await import('../backends/nftables/mode.ts')).nftablesMode,
  userspace: async () => (await import('../backends/userspace/mode.ts')).userspaceMode,
};

export function loadMode(mode: ProxyMode): Promise<Mode> {
  return modes[mode]();
}

/** Every mode, in the order in which clean-up must go through them. */
export function allModes(): Promise<Mode[]> {
  return Promise.all(Object.values(modes).map((load) => load()));
}

/** The modes whose rules a start in `mode` removes. */
export async function modesReplacedBy({ name, sharesRulesWith = [] }: Mode): Promise<Mode[]> {
  const kept = [name, ...sharesRulesWith];
  return (await allModes()).filter((mode) => !kept.includes(mode.name));
}

/** The device on which a mode, perhaps one that ran before, keeps addresses of services. */
export const serviceAddressDevice = deviceName;
