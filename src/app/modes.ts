import type { ProxyMode } from '../backends/backend.ts';
import type { Mode } from '../backends/mode.ts';

/**
 * The one place where modes plug in. Each is loaded only when it is used. Clean-up goes in this order: ipvs mode leaves
 * chains that iptables mode has, too, to it if they are in use; iptables mode removes all of its chains or none, and
 * cannot while those of ipvs mode lead to them.
 */
const modes: Partial<Record<ProxyMode, () => Promise<Mode>>> = {
  iptables: async () => (await import('../backends/iptables/mode.ts')).iptablesMode,
  nftables: async () => (await import('../backends/nftables/mode.ts')).nftablesMode,
  userspace: async () => (await import('../backends/userspace/mode.ts')).userspaceMode,
};

/** A mode that this version cannot run. */
export class ModeUnavailableError extends Error {
  constructor(mode: string) {
    super(
      `proxy mode ${JSON.stringify(mode)} is not available in this version (available: ${available().join(', ')})`,
    );
    this.name = 'ModeUnavailableError';
  }
}

export async function loadMode(mode: string): Promise<Mode> {
  const load = modes[mode as ProxyMode];
  if (!load) throw new ModeUnavailableError(mode);
  return load();
}

/** Every mode there is, by name. */
export async function allModes(): Promise<ReadonlyMap<string, Mode>> {
  return new Map(await Promise.all(available().map(async (name) => [name, await loadMode(name)] as const)));
}

/** Modes whose rules cannot stay beside those of `mode`. The two that write iptables rules share their chains. */
export async function modesReplacedBy(mode: string): Promise<ReadonlyMap<string, Mode>> {
  const all = await allModes();
  return new Map([...all].filter(([name]) => rulesOf(name) !== rulesOf(mode)));
}

function rulesOf(mode: string): string {
  return mode === 'ipvs' ? 'iptables' : mode;
}

function available(): string[] {
  return Object.keys(modes);
}
