import type { IpsetClient } from '../../kernel/ipset/client.ts';
import type { IpvsClient } from '../../kernel/ipvs/client.ts';
import {
  formatVirtualServer,
  type IpvsOperation,
  isForeign,
  type VirtualServer,
} from '../../kernel/ipvs/objects.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Logger } from '../../obs/log.ts';
import { checkModules, explainModules, type ModuleContext } from './module-check.ts';

/** What the kernel is asked in order to find out whether it can run ipvs mode. */
export interface ProbedKernel {
  readonly ipvs: Pick<IpvsClient, 'listServers' | 'apply'>;
  readonly sets: Pick<IpsetClient, 'protocol'>;
}

/** The oldest protocol of ipset in which sets are what they are today; kernels since 2.6.39 have it. */
const minimumProtocol = 6;

/** An address that is reserved for documentation, so that no service can have it. */
const probeKey = { address: '198.51.100.0', port: 20_000, protocol: 'TCP' } as const;

/** Loads the module of IPVS; kernels before 5.13 do not do that by themselves. A failure is logged only. */
export async function loadIpvsModule(run: ModuleContext['run'], logger: Logger): Promise<void> {
  try {
    const { status, output } = await run('modprobe', ['-va', 'ip_vs'], { timeoutMs: 10_000 });
    if (status !== 0) logger.info('Could not load module ip_vs', { status, output: output.trim() });
  } catch (error) {
    logger.info('Could not run modprobe to load module ip_vs', { reason: messageOf(error) });
  }
}

/**
 * Finds out whether this kernel can run ipvs mode with a scheduler, by having it make a virtual server; asking loads
 * the scheduler's module. Throws the reason when it cannot.
 */
export async function checkUsable({ ipvs, sets }: ProbedKernel, scheduler: string): Promise<void> {
  await checkProtocol(sets);
  const before = await ipvs.listServers();
  if (before.some((server) => server.scheduler === scheduler)) return;
  const probe: VirtualServer = { ...probeKey, scheduler, flags: 0, timeout: 0, netmask: 0xffffffff };
  // A run that was killed in the middle of this has left it, with another scheduler.
  const key = formatVirtualServer(probe);
  const isLeft = before.some((server) => !isForeign(server) && formatVirtualServer(server) === key);
  await carryOut(
    ipvs,
    { verb: isLeft ? 'edit' : 'add', server: probe },
    `scheduler ${scheduler} is unusable`,
  );
  const after = await ipvs.listServers();
  await carryOut(ipvs, { verb: 'delete', server: probe }, 'the probe cannot be undone');
  if (after.length === 0) throw new Error('the kernel does not list the virtual server that it took');
}

/** Adds to the reason why ipvs mode is unusable what the node's modules have to do with it. */
export async function withMissingModules(
  reason: unknown,
  scheduler: string,
  context: ModuleContext,
): Promise<Error> {
  const explanation = explainModules(await checkModules(context, scheduler));
  const text = [messageOf(reason), explanation].filter((part) => part !== '').join('; ');
  return new Error(`can't use the IPVS proxier: ${text}`, { cause: reason });
}

async function checkProtocol(sets: ProbedKernel['sets']): Promise<void> {
  let protocol: number;
  try {
    protocol = await sets.protocol();
  } catch (error) {
    throw new Error(`this kernel has no ipset (module ip_set): ${messageOf(error)}`, { cause: error });
  }
  if (protocol >= minimumProtocol) return;
  throw new Error(`this kernel's ipset speaks protocol ${protocol}, at least ${minimumProtocol} is needed`);
}

async function carryOut(
  ipvs: ProbedKernel['ipvs'],
  operation: IpvsOperation,
  problem: string,
): Promise<void> {
  const [failure] = await ipvs.apply([operation]);
  if (failure) throw new Error(`${problem}: ${failure.error.message}`, { cause: failure.error });
}
