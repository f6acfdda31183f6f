import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { SavedTable } from '../../kernel/iptables/saved-table.ts';
import { serviceCounters } from './service-counters.ts';

const dump = `
[9:540] -A KUBE-NODEPORTS -p udp -m comment --comment "a/dns:dns" -m udp --dport 30053 -j KUBE-EXT-DNS
[9:540] -A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "a/web cluster IP" -m tcp --dport 80 -j KUBE-SVL-WEB
[9:540] -A KUBE-SERVICES -d 10.96.0.2/32 -p udp -m comment --comment "a/dns:dns external IP" -m udp --dport 53 -j KUBE-EXT-DNS
[9:540] -A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
[4:240] -A KUBE-EXT-DNS -j KUBE-SVC-DNS
[7:420] -A KUBE-SVC-DNS -m recent --rcheck --seconds 60 --reap --name KUBE-SEP-A --rsource -j KUBE-SEP-A
[8:480] -A KUBE-SVC-DNS -m statistic --mode random --probability 0.5 -j KUBE-SEP-A
[8:480] -A KUBE-SVC-DNS -j KUBE-SEP-B
[8:480] -A KUBE-SVL-DNS -j KUBE-SEP-A
[1:60] -A KUBE-SEP-A -s 10.0.0.1/32 -j KUBE-MARK-MASQ
[5:300] -A KUBE-SEP-A -p udp -m udp -j DNAT --to-destination 10.0.0.1:53
[6:360] -A KUBE-SEP-B -p udp -m udp -j DNAT --to-destination 10.0.0.2:53
:KUBE-SVL-WEB - [0:0]
`;

test('each rewritten destination is a connection, whichever way led to the endpoint', async () => {
  const nat = new SavedTable('nat');
  for (const line of dump.split('\n')) nat.take(line);
  const uncounted = { packets: undefined, bytes: undefined };
  assert.deepEqual(await serviceCounters(nat, new FakeClock()), [
    { service: 'a/dns:dns/UDP', connections: 11, ...uncounted },
    { service: 'a/web/TCP', connections: 0, ...uncounted },
  ]);
});
