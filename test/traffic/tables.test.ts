import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { NftClient } from '../../src/kernel/nft/client.ts';
import { openNftClient } from '../../src/kernel/nft/netlink-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { watchingTables } from '../../src/model/watching-table.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { CountingTable } from '../../src/traffic/counting-table.ts';
import { RefusalTable } from '../../src/traffic/refusal-table.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { planOf } from '../cluster/plans.ts';

const web = planOf({ name: 'web', clusterIP: '10.96.0.1', nodePort: 30080 }, [{ ip: '10.244.0.5' }]);
const lonely = planOf({ name: 'lonely', clusterIP: '10.96.0.2' });
const local = planOf({ name: 'local', clusterIP: '10.96.0.3', nodePort: 30004, externalPolicyLocal: true }, [
  { ip: '10.244.2.5' },
]);

inNamespace(import.meta.url, () => {
  suite('tables that watch packets', () => {
    test('have chains for refused connections only while a destination may refuse some', async () => {
      const nft = openNftClient(await loadLibc(), { clock: systemClock });
      try {
        await new CountingTable(nft, 'IPv4', true).create();
        const refusals = new RefusalTable(nft, 'IPv4', watchingTables.meter);
        await refusals.create(7);
        await refusals.update([['web', web]]);
        assert.deepEqual(await hooks(nft), ['input', 'postrouting']);
        await refusals.update([['lonely', lonely]]);
        assert.deepEqual(await hooks(nft), ['input', 'output', 'postrouting', 'prerouting']);
        assert.deepEqual(lookups(), ['@refusing', '@refusing']);
        await refusals.update([['local', local]]);
        assert.deepEqual(lookups().toSorted(), [
          '@refusing',
          '@refusing',
          '@refusing-node-ports',
          '@refusing-node-ports',
        ]);
        await refusals.update([
          ['lonely', undefined],
          ['local', undefined],
        ]);
        assert.deepEqual(await hooks(nft), ['input', 'postrouting']);
      } finally {
        nft.close();
      }
    });

    test('go with the socket that made them', () => {
      assert.equal(sh('nft list ruleset'), '');
    });
  });
});

async function hooks(nft: NftClient): Promise<string[]> {
  const chains = await nft.listChains({ family: 'ip', name: `${watchingTables.meter}${process.pid}` });
  return chains.flatMap(({ base }) => (base ? [base.hook] : [])).toSorted();
}

/** The sets in which rules look up a packet. */
function lookups(): string[] {
  return [...sh('nft list ruleset').matchAll(/(@refusing\S*) .*log/g)].map(([, set = '']) => set);
}
