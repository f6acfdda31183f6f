import type { Mode } from '../backends/mode.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';

/**
 * The one place where modes plug in. Each is loaded only when it is used. Clean-up goes in this order: ipvs mode leaves
 * chains that iptables mode has, too, to it if they are in use; iptables mode removes all of its chains or none, and
 * cannot while those of ipvs mode lead to them.
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

/** Every mode there is, by name. */
export async function allModes(): Promise<ReadonlyMap<string, Mode>> {
  return new Map(
    await Promise.all(Object.entries(modes).map(async ([name, load]) => [name, await load()] as const)),
  );
}

/** Modes whose rules cannot stay beside those of `mode`. The two that write iptables rules share their chains. */
export async function modesReplacedBy(mode: string): Promise<ReadonlyMap<string, Mode>> {
  const all = await allModes();
  return new Map([...all].filter(([name]) => rulesOf(name) !== rulesOf(mode)));
}

function rulesOf(mode: string): string {
  return mode === 'ipvs' ? 'iptables' : mode;
}
