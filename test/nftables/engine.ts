import type { AddressSource } from '../../src/backends/address-watch.ts';
import { SyncEngine } from '../../src/backends/engine.ts';
import { NftablesDriver, type NftablesOptions } from '../../src/backends/nftables/driver.ts';
import type { Believed } from '../../src/backends/nftables/prepare.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { ignoredMetric } from '../../src/obs/metrics.ts';
import { repairParts } from '../repair-parts.ts';

type Parts = Pick<NftablesOptions, 'settings' | 'client'> &
  Partial<NftablesOptions> & {
    /** The node's addresses. */
    readonly list?: AddressSource['list'];
  };

/** An engine in nftables mode, with defaults for most parts. It requests no syncs and watches no addresses. */
export function nftablesEngine({ list = async () => [], ...parts }: Parts): SyncEngine<Believed> {
  const metrics = { nftablesSyncFailures: ignoredMetric, nftablesCleanupFailures: ignoredMetric };
  const options = { metrics, logger: silentLogger, clock: systemClock, ...parts };
  return new SyncEngine({
    ...options,
    family: parts.settings.family,
    driver: new NftablesDriver(options),
    addresses: { source: { list, watch: () => ({ close() {} }) } },
    retryMs: 0,
    ...repairParts(options.clock),
    requestSync: () => {},
  });
}
