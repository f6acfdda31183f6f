import { CommandError } from '../../kernel/iptables/command-error.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import type { RunProgram } from '../../kernel/program.ts';
import type { Clock } from '../../lib/clock.ts';
import { families } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { comment, type Jump, removeJump } from '../jumps.ts';

const portals = comment('handle ClusterIPs; NOTE: this must be before the NodePort rules');
const nodePorts = [
  ...['-m', 'addrtype', '--dst-type', 'LOCAL'],
  ...comment('handle service NodePorts; NOTE: this must be the last rule in the chain'),
];
const nonLocal = comment('Ensure that non-local NodePort traffic can flow');

/** The jumps that upstream's userspace mode made. */
const jumps: readonly Jump[] = [
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-PORTALS-HOST', match: portals },
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-PORTALS-CONTAINER', match: portals },
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-NODEPORT-HOST', match: nodePorts },
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-NODEPORT-CONTAINER', match: nodePorts },
  { table: 'filter', from: 'INPUT', to: 'KUBE-NODEPORT-NON-LOCAL', match: nonLocal },
];

/** Where iptables is looked for and run. */
export interface OldChainsContext {
  readonly run: RunProgram;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Removes what upstream's userspace mode left: five jumps and five chains, in both families. Succeeds when nothing is
 * there, or no iptables. Throws when something cannot be removed.
 */
export async function removeOldChains(context: OldChainsContext): Promise<void> {
  const failures: string[] = [];
  for (const family of families) {
    const commands = new Commands({ family, ...context });
    const present = await commands.leftoverChains();
    for (const jump of jumps.filter(({ to }) => present?.has(to))) {
      try {
        await removeOne(commands, jump);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        failures.push(error.message);
      }
    }
  }
  if (failures.length > 0) throw new Error(failures.join('; '));
}

/** Empties the chain first: whatever else fails, it leads nowhere then. */
async function removeOne(commands: Commands, jump: Jump): Promise<void> {
  await commands.flushChain(jump.table, jump.to);
  await removeJump(commands, jump);
  await commands.deleteChain(jump.table, jump.to);
}
