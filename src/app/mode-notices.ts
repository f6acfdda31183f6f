import type { Logger } from '../obs/log.ts';
import type { Completed } from './complete.ts';
import type { NodeEvents } from './events.ts';

/** Warns, in the log and as an event, about a mode that will not stay what it is. */
export function reportMode({ config, modeDefaulted }: Completed, events: NodeEvents, logger: Logger): void {
  if (modeDefaulted) {
    const note =
      'No proxy mode is configured, so iptables is used. From Kubernetes 1.40 the default is nftables: ' +
      'set mode to "nftables" to move now, or to "iptables" to stay.';
    logger.error(undefined, note);
    events.modeDefaulted(note);
  }
  if (config.mode === 'ipvs') {
    const note =
      'Proxy mode ipvs is deprecated: it is off by default from Kubernetes 1.40 and gone in 1.43. ' +
      'Plan to move to "nftables".';
    logger.error(undefined, note);
    events.ipvsDeprecated(note);
  }
}
