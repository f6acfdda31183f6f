import { Commands } from '../../kernel/iptables/commands.ts';
import type { Flavour } from '../../kernel/iptables/table-reader.ts';
import { programFile, runProgram } from '../../kernel/program.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { toMillis } from '../../lib/duration.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { MetricGroup } from '../../obs/proxy-metrics.ts';
import { nodePortSource } from '../address-watch.ts';
import type { Backend } from '../backend.ts';
import { chainLeftovers } from '../chain-leftovers.ts';
import { SyncEngine } from '../engine.ts';
import type { Inspection } from '../inspection.ts';
import { availableFamilies, type ProgramContext } from '../iptables-families.ts';
import { proxyChainNames } from '../kubelet-chains.ts';
import { joined } from '../leftovers.ts';
import { type BackendContext, defaultMasqueradeBit, type InspectionContext, type Mode } from '../mode.ts';
import type { PacketRules } from '../packet-rules.ts';
import { SharedByFamilies } from '../shared-by-families.ts';
import { changesOf } from './changes.ts';
import { IptablesDriver } from './driver.ts';
import { warnOfMix } from './flavour.ts';
import { openInspection } from './inspection.ts';
import { KernelTables } from './kernel-tables.ts';
import { markLocalnet } from './localnet.ts';
import { localnetLeftovers } from './localnet-leftovers.ts';
import { IptablesNode } from './node.ts';
import { isOwnChain } from './own-chains.ts';
import { packetRules } from './packet-rules.ts';
import { checkVersion, isConntrackLiberal, routeLocalnet, servesLocalhost } from './preconditions.ts';
import { RulesetWatch } from './ruleset-watch.ts';
import type { IptablesSettings } from './settings.ts';
import { WrittenRules } from './written-rules.ts';

/** iptables mode: upstream's chains, rule by rule, written with the iptables programs of the PATH. */
class IptablesMode implements Mode {
  readonly name = 'iptables';
  readonly chainNames = proxyChainNames;
  readonly sharesRulesWith = ['ipvs'] as const;
  readonly isTraceable = true;
  readonly rewritesWithNat = true;
  readonly leftovers = joined(chainLeftovers(isOwnChain), localnetLeftovers);
  readonly #node = new SharedByFamilies<IptablesNode>();

  metricGroups(): readonly MetricGroup[] {
    return ['partial syncs', 'iptables restores', 'iptables rules', 'repairs'];
  }

  packetRules({ config }: Pick<InspectionContext, 'config'>): PacketRules {
    return packetRules(config.iptables.localhostNodePorts ?? true);
  }

  supportedFamilies(logger: Logger): Promise<ReadonlySet<Family>> {
    return availableFamilies(flavourContext(systemClock, logger));
  }

  /** Throws the reason when this node cannot run the mode. */
  async create(context: BackendContext): Promise<Backend> {
    const { family, metrics, clock, logger } = context;
    const isFirst = !this.#node.isHeld;
    const node = await this.#node.acquire(() => IptablesNode.open(metrics, clock, logger));
    try {
      const settings = settingsOf(context);
      if (settings.localhostNodePorts && routeLocalnet(systemFiles, logger)) await markLocalnet(logger);
      const commands = new Commands({ family, run: runProgram, clock, logger });
      const flavour = await checkVersion(commands, programFile);
      if (isFirst) await warnOfMix(flavour, flavourContext(clock, logger));
      return this.#engine(context, settings, flavour, node);
    } catch (error) {
      await this.#release();
      throw error;
    }
  }

  inspect(context: InspectionContext): Promise<Inspection> {
    const { family, clock, logger } = context;
    const commands = new Commands({ family, run: runProgram, clock, logger });
    return openInspection({ settings: settingsOf(context), commands, files: systemFiles, clock, logger });
  }

  #engine(
    { family, config, budget, metrics, logger, clock, requestSync }: BackendContext,
    settings: IptablesSettings,
    flavour: Flavour,
    node: IptablesNode,
  ): Backend {
    const changes = changesOf(flavour, node, { family, clock, logger });
    const written = new WrittenRules((growth) => changes.explained(growth));
    const commands = new Commands({ family, run: runProgram, clock, logger, observer: changes });
    const tables = new KernelTables({ commands, written, counters: node.counters, logger, flavour });
    const interval = settings.syncPeriod;
    const driver = new IptablesDriver({
      settings,
      tables,
      watch: (onDamage) => {
        return new RulesetWatch({ commands, written, changes, clock, logger, interval, onDamage });
      },
      metrics,
      logger,
      clock,
      onClose: () => this.#release(),
    });
    return new SyncEngine({
      family,
      driver,
      addresses: nodePortSource(node.kernel.addresses, settings.nodePortAddresses),
      retryMs: toMillis(config.minSyncPeriod),
      budget,
      metrics,
      logger,
      clock,
      requestSync,
    });
  }

  #release(): Promise<void> {
    return this.#node.release((node) => node.close());
  }
}

export const iptablesMode = new IptablesMode();

function flavourContext(clock: Clock, logger: Logger): ProgramContext {
  return { run: runProgram, files: systemFiles, clock, logger };
}

function settingsOf(context: InspectionContext): IptablesSettings {
  const { family, config, nodeIP, nodePortAddresses, localDetector } = context;
  return {
    family,
    masqueradeBit: config.iptables.masqueradeBit ?? defaultMasqueradeBit,
    masqueradeAll: config.linux.masqueradeAll,
    localDetector,
    nodePortAddresses,
    nodeIP,
    localhostNodePorts: servesLocalhost(config.iptables.localhostNodePorts, nodePortAddresses),
    conntrackLiberal: isConntrackLiberal(systemFiles),
    syncPeriod: toMillis(config.syncPeriod),
  };
}
