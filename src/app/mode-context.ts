import type { InspectionContext } from '../backends/mode.ts';
import { systemClock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Completed } from './complete.ts';
import type { NodeSetup } from './node-setup.ts';

/** What a mode is told about the node, be it to write or to look. */
export function modeContext(
  family: Family,
  { config, gates }: Completed,
  setup: NodeSetup,
  logger: Logger,
): InspectionContext {
  return {
    family,
    config,
    gateEnabled: (gate) => gates.enabled(gate),
    nodeIP: setup.addresses.ips[family],
    nodePortAddresses: setup.nodePorts[family],
    localDetector: setup.detectors[family],
    logger: logger.named(family),
    clock: systemClock,
  };
}
