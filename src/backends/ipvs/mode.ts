import { Commands } from '../../kernel/iptables/commands.ts';
import { ipvsOpeners } from '../../kernel/ipvs/openers.ts';
import { runProgram } from '../../kernel/program.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import { systemClock } from '../../lib/clock.ts';
import { toMillis } from '../../lib/duration.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { MetricGroup } from '../../obs/proxy-metrics.ts';
import type { Backend } from '../backend.ts';
import { SyncEngine } from '../engine.ts';
import type { Inspection } from '../inspection.ts';
import { availableFamilies } from '../iptables-families.ts';
import { proxyChainNames } from '../kubelet-chains.ts';
import type { BackendContext, InspectionContext, Mode } from '../mode.ts';
import type { PacketRules } from '../packet-rules.ts';
import { SharedByFamilies } from '../shared-by-families.ts';
import { IpvsDriver } from './driver.ts';
import { openInspection } from './inspection.ts';
import { serviceableAddresses } from './interface-facts.ts';
import { ipvsLeftovers } from './leftovers.ts';
import { type LinuxIpvs, openLinuxIpvs } from './linux-kernel.ts';
import { packetRules } from './packet-rules.ts';
import { checkUsable, withMissingModules } from './preconditions.ts';
import { settingsOf } from './settings.ts';
import { setSysctls } from './sysctls.ts';
import { setTimeouts } from './timeouts.ts';

/** ipvs mode. Both families share the sockets, the device and the table of virtual servers. */
class IpvsMode implements Mode {
  readonly name = 'ipvs';
  readonly chainNames = proxyChainNames;
  readonly sharesRulesWith = ['iptables'] as const;
  readonly countsServices = true;
  readonly hashes = true;
  readonly leftovers = ipvsLeftovers;
  readonly deprecation = {
    eventReason: 'IPVSDeprecation',
    note:
      'Proxy mode ipvs is deprecated: it is off by default from Kubernetes 1.40 and gone in 1.43. ' +
      'Plan to move to "nftables".',
  };
  readonly #linux = new SharedByFamilies<LinuxIpvs>();

  metricGroups(): readonly MetricGroup[] {
    return ['iptables restores'];
  }

  packetRules({ config }: Pick<InspectionContext, 'config'>): PacketRules {
    return packetRules(config.ipvs.scheduler);
  }

  supportedFamilies(logger: Logger): Promise<ReadonlySet<Family>> {
    return availableFamilies({ run: runProgram, files: systemFiles, clock: systemClock, logger });
  }

  /** Throws the reason when this node cannot run the mode. */
  async create(context: BackendContext): Promise<Backend> {
    const { family, config, budget, metrics, logger, clock, requestSync } = context;
    const settings = settingsOf(context);
    const linux = await this.#acquire(context, settings.scheduler);
    try {
      await checkUsable(linux, settings.scheduler).catch((error: unknown) =>
        unusable(error, settings.scheduler),
      );
      setSysctls({ files: systemFiles, strictARP: config.ipvs.strictARP, logger });
      await setTimeouts(linux.ipvs, config, logger);
    } catch (error) {
      await this.#release();
      throw error;
    }
    const driver = new IpvsDriver({
      settings,
      kernel: linux.kernelOf(family),
      metrics,
      logger,
      clock,
      fullSyncPeriodMs: toMillis(config.syncPeriod),
      onClose: () => this.#release(),
    });
    const relevant = (listed: readonly string[]) => serviceableAddresses(family, listed);
    return new SyncEngine({
      family,
      driver,
      addresses: { source: linux.nodeAddresses, relevant },
      retryMs: toMillis(config.minSyncPeriod),
      budget,
      metrics,
      logger,
      clock,
      requestSync,
    });
  }

  /** Rejects where there is no IPVS; an inspection does not load the module. */
  async inspect(context: InspectionContext): Promise<Inspection> {
    const { family, clock, logger } = context;
    const open = await ipvsOpeners(clock);
    const linux = await openLinuxIpvs({ open, run: runProgram, clock, logger, mayLoad: false });
    const kernel = {
      ...linux.kernelOf(family),
      close: () => linux.close(),
    };
    const commands = new Commands({ family, run: runProgram, clock, logger });
    return openInspection({ settings: settingsOf(context), kernel, commands, files: systemFiles, clock });
  }

  async #acquire({ clock, logger }: BackendContext, scheduler: string): Promise<LinuxIpvs> {
    const open = async () =>
      openLinuxIpvs({ open: await ipvsOpeners(clock), run: runProgram, clock, logger });
    return this.#linux.acquire(open).catch((error: unknown) => unusable(error, scheduler));
  }

  #release(): Promise<void> {
    return this.#linux.release((linux) => linux.close());
  }
}

export const ipvsMode = new IpvsMode();

async function unusable(reason: unknown, scheduler: string): Promise<never> {
  throw await withMissingModules(reason, scheduler, { files: systemFiles, run: runProgram });
}
