import type { RunProgram } from '../../kernel/program.ts';
import type { Logger } from '../../obs/log.ts';

/** A jump that upstream's userspace mode made. */
interface Jump {
  readonly table: 'nat' | 'filter';
  readonly from: string;
  readonly to: string;
  readonly match: readonly string[];
}

const portals = [
  '-m',
  'comment',
  '--comment',
  'handle ClusterIPs; NOTE: this must be before the NodePort rules',
];
const nodePorts = [
  '-m',
  'addrtype',
  '--dst-type',
  'LOCAL',
  '-m',
  'comment',
  '--comment',
  'handle service NodePorts; NOTE: this must be the last rule in the chain',
];
const nonLocal = ['-m', 'comment', '--comment', 'Ensure that non-local NodePort traffic can flow'];

const jumps: readonly Jump[] = [
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-PORTALS-HOST', match: portals },
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-PORTALS-CONTAINER', match: portals },
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-NODEPORT-HOST', match: nodePorts },
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-NODEPORT-CONTAINER', match: nodePorts },
  { table: 'filter', from: 'INPUT', to: 'KUBE-NODEPORT-NON-LOCAL', match: nonLocal },
];

const programs = ['iptables', 'ip6tables'];
const timeoutMs = 60_000;

/**
 * Removes what upstream's userspace mode left: five jumps and five chains, in both families. What is not there is not
 * missed, and neither is a node without iptables. Throws when something is there and stays.
 */
export async function removeOldChains(run: RunProgram, logger: Logger): Promise<void> {
  const failures: string[] = [];
  for (const program of programs) {
    try {
      for (const jump of jumps) await removeOne(program, jump, run, failures);
    } catch (error) {
      if (!isMissing(error)) throw error;
      logger.v(2).info('No iptables to clean up', { program });
    }
  }
  if (failures.length > 0) throw new Error(failures.join('; '));
}

async function removeOne(program: string, jump: Jump, run: RunProgram, failures: string[]): Promise<void> {
  const { table, from, to, match } = jump;
  const call = async (...args: readonly string[]): Promise<{ ok: boolean; output: string }> => {
    const { status, output } = await run(program, ['-w', '5', '-t', table, ...args], { timeoutMs });
    return { ok: status === 0, output };
  };
  // Looking does not make the table, as writing would.
  if (!(await call('-S', to)).ok) return;
  const rule = [from, ...match, '-j', to];
  while ((await call('-C', ...rule)).ok) {
    const { ok, output } = await call('-D', ...rule);
    if (!ok) failures.push(`${program}: jump to ${to}: ${output.trim()}`);
    if (!ok) break;
  }
  for (const verb of ['-F', '-X']) {
    const { ok, output } = await call(verb, to);
    if (ok) continue;
    failures.push(`${program}: chain ${to}: ${output.trim()}`);
    break;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
