import { FeatureTest } from '../probe.ts';
import { NftBatch } from './batch.ts';
import type { NftClient } from './client.ts';
import { NftError } from './errors.ts';

/** Destroy messages (`nativeDestroy` of a batch): deleting without an error for what is not there. */
export function destroyFeature(client: NftClient): FeatureTest {
  return new FeatureTest('nf_tables destroy message', { major: 6, minor: 3 }, async () => {
    const table = { family: 'ip', name: 'kube-proxy-probe' } as const;
    return accepts(client, new NftBatch({ nativeDestroy: true }).destroy('table', table));
  });
}

/** Whether the kernel would take a batch. A refusal for want of privilege says nothing about features. */
async function accepts(client: NftClient, batch: NftBatch): Promise<boolean> {
  try {
    await client.check(batch);
    return true;
  } catch (error) {
    if (error instanceof NftError && error.errno !== 'EPERM') return false;
    throw error;
  }
}
