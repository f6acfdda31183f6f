/** nfacct counters in a kernel that has them: created once, incremented by a rule, read back. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { PacketCounters } from '../../src/backends/iptables/counters.ts';
import { type AcctClient, openAcctClient } from '../../src/kernel/acct/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';

const name = 'localhost_nps_accepted_pkts';

inNamespace(import.meta.url, () => {
  suite('nfacct', () => {
    let client: AcctClient;
    before(async () => {
      client = openAcctClient(await loadLibc(), { clock: systemClock });
    });
    after(() => client.close());

    test('counters are created, found again and counted by rules', async (t) => {
      const counters = await PacketCounters.open(client, silentLogger);
      if (!counters) return t.skip('this kernel has no nfacct counters');
      const both = { invalidDropped: true, localhostAccepted: true };
      assert.deepEqual(await counters.ensure(silentLogger), both);
      assert.deepEqual(await counters.ensure(silentLogger), both);
      await assert.rejects(client.create(name), { code: 'EBUSY' });
      assert.deepEqual(await client.get(name), { name, packets: 0n, bytes: 0n });
      assert.equal(await client.get('kpt-no-such-counter'), undefined);
      sh(`iptables -I OUTPUT -o lo -p udp -m nfacct --nfacct-name ${name} -j ACCEPT`);
      sh("bash -c 'for i in 1 2 3; do echo x > /dev/udp/127.0.0.1/9 || true; done' 2>/dev/null");
      assert.equal((await client.get(name))?.packets, 3n);
    });
  });
});
