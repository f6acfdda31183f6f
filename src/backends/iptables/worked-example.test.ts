import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { fakeHarness } from '../../../test/iptables/harness.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';

/**
 * Two services of a small shop, line by line. Rules of one chain stand in the order in which upstream writes them; chains
 * are declared sorted by name.
 */

const catalog = (...ips: string[]): ServicePlan =>
  planOf(
    { namespace: 'shop', name: 'catalog', portName: 'http', clusterIP: '10.96.10.20' },
    ips.map((ip) => ({ ip, local: ip.startsWith('10.244.1.') })),
  );

const front = (...ips: string[]): ServicePlan =>
  planOf(
    {
      namespace: 'shop',
      name: 'front',
      portName: 'https',
      clusterIP: '10.96.77.4',
      port: 443,
      nodePort: 31443,
      externalPolicyLocal: true,
      loadBalancerVIPs: ['198.51.100.10'],
      sourceRanges: ['203.0.113.0/24', '192.168.10.0/24'],
      affinitySeconds: 10800,
      healthCheckNodePort: 32100,
    },
    ips.map((ip) => ({ ip, port: 8443, local: ip.startsWith('10.244.1.') })),
  );

const whole = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-FIREWALL - [0:0]
-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-PROXY-FIREWALL -m comment --comment "shop/front:https traffic not accepted by KUBE-FW-VPWLIZ4UCZR3AVHA" -m tcp -p tcp -d 198.51.100.10 --dport 443 -j DROP
-A KUBE-NODEPORTS -m comment --comment "shop/front:https health check node port" -m tcp -p tcp --dport 32100 -j ACCEPT
-A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-EXT-VPWLIZ4UCZR3AVHA - [0:0]
:KUBE-FW-VPWLIZ4UCZR3AVHA - [0:0]
:KUBE-SEP-ELDTPJ5ZEGKCH737 - [0:0]
:KUBE-SEP-LAIPUCZNHDS6GZYL - [0:0]
:KUBE-SEP-NTC2IGLNX522ZIZR - [0:0]
:KUBE-SEP-VGF64YYBPRQSUG5T - [0:0]
:KUBE-SVC-ITBI3OHKD3FRXPDK - [0:0]
:KUBE-SVC-VPWLIZ4UCZR3AVHA - [0:0]
:KUBE-SVL-VPWLIZ4UCZR3AVHA - [0:0]
-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000
-A KUBE-SERVICES -m comment --comment "shop/catalog:http cluster IP" -m tcp -p tcp -d 10.96.10.20 --dport 80 -j KUBE-SVC-ITBI3OHKD3FRXPDK
-A KUBE-SVC-ITBI3OHKD3FRXPDK -m comment --comment "shop/catalog:http cluster IP" -m tcp -p tcp -d 10.96.10.20 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-SVC-ITBI3OHKD3FRXPDK -m comment --comment "shop/catalog:http -> 10.244.1.7:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-NTC2IGLNX522ZIZR
-A KUBE-SVC-ITBI3OHKD3FRXPDK -m comment --comment "shop/catalog:http -> 10.244.2.9:8080" -j KUBE-SEP-VGF64YYBPRQSUG5T
-A KUBE-SEP-NTC2IGLNX522ZIZR -m comment --comment shop/catalog:http -s 10.244.1.7 -j KUBE-MARK-MASQ
-A KUBE-SEP-NTC2IGLNX522ZIZR -m comment --comment shop/catalog:http -m tcp -p tcp -j DNAT --to-destination 10.244.1.7:8080
-A KUBE-SEP-VGF64YYBPRQSUG5T -m comment --comment shop/catalog:http -s 10.244.2.9 -j KUBE-MARK-MASQ
-A KUBE-SEP-VGF64YYBPRQSUG5T -m comment --comment shop/catalog:http -m tcp -p tcp -j DNAT --to-destination 10.244.2.9:8080
-A KUBE-SERVICES -m comment --comment "shop/front:https cluster IP" -m tcp -p tcp -d 10.96.77.4 --dport 443 -j KUBE-SVC-VPWLIZ4UCZR3AVHA
-A KUBE-SERVICES -m comment --comment "shop/front:https loadbalancer IP" -m tcp -p tcp -d 198.51.100.10 --dport 443 -j KUBE-FW-VPWLIZ4UCZR3AVHA
-A KUBE-NODEPORTS -m comment --comment shop/front:https -m tcp -p tcp -d 127.0.0.0/8 --dport 31443 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j KUBE-EXT-VPWLIZ4UCZR3AVHA
-A KUBE-NODEPORTS -m comment --comment shop/front:https -m tcp -p tcp --dport 31443 -j KUBE-EXT-VPWLIZ4UCZR3AVHA
-A KUBE-SVC-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https cluster IP" -m tcp -p tcp -d 10.96.77.4 --dport 443 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-EXT-VPWLIZ4UCZR3AVHA -m comment --comment "pod traffic for shop/front:https external destinations" -s 10.244.0.0/16 -j KUBE-SVC-VPWLIZ4UCZR3AVHA
-A KUBE-EXT-VPWLIZ4UCZR3AVHA -m comment --comment "masquerade LOCAL traffic for shop/front:https external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
-A KUBE-EXT-VPWLIZ4UCZR3AVHA -m comment --comment "route LOCAL traffic for shop/front:https external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC-VPWLIZ4UCZR3AVHA
-A KUBE-EXT-VPWLIZ4UCZR3AVHA -j KUBE-SVL-VPWLIZ4UCZR3AVHA
-A KUBE-FW-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https loadbalancer IP" -s 203.0.113.0/24 -j KUBE-EXT-VPWLIZ4UCZR3AVHA
-A KUBE-FW-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https loadbalancer IP" -s 192.168.10.0/24 -j KUBE-EXT-VPWLIZ4UCZR3AVHA
-A KUBE-FW-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https loadbalancer IP" -s 198.51.100.10 -j KUBE-EXT-VPWLIZ4UCZR3AVHA
-A KUBE-FW-VPWLIZ4UCZR3AVHA -m comment --comment "other traffic to shop/front:https will be dropped by KUBE-PROXY-FIREWALL"
-A KUBE-SVC-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https -> 10.244.1.30:8443" -m recent --name KUBE-SEP-LAIPUCZNHDS6GZYL --rcheck --seconds 10800 --reap -j KUBE-SEP-LAIPUCZNHDS6GZYL
-A KUBE-SVC-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https -> 10.244.2.31:8443" -m recent --name KUBE-SEP-ELDTPJ5ZEGKCH737 --rcheck --seconds 10800 --reap -j KUBE-SEP-ELDTPJ5ZEGKCH737
-A KUBE-SVC-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https -> 10.244.1.30:8443" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-LAIPUCZNHDS6GZYL
-A KUBE-SVC-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https -> 10.244.2.31:8443" -j KUBE-SEP-ELDTPJ5ZEGKCH737
-A KUBE-SVL-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https -> 10.244.1.30:8443" -m recent --name KUBE-SEP-LAIPUCZNHDS6GZYL --rcheck --seconds 10800 --reap -j KUBE-SEP-LAIPUCZNHDS6GZYL
-A KUBE-SVL-VPWLIZ4UCZR3AVHA -m comment --comment "shop/front:https -> 10.244.1.30:8443" -j KUBE-SEP-LAIPUCZNHDS6GZYL
-A KUBE-SEP-LAIPUCZNHDS6GZYL -m comment --comment shop/front:https -s 10.244.1.30 -j KUBE-MARK-MASQ
-A KUBE-SEP-LAIPUCZNHDS6GZYL -m comment --comment shop/front:https -m recent --name KUBE-SEP-LAIPUCZNHDS6GZYL --set -m tcp -p tcp -j DNAT --to-destination 10.244.1.30:8443
-A KUBE-SEP-ELDTPJ5ZEGKCH737 -m comment --comment shop/front:https -s 10.244.2.31 -j KUBE-MARK-MASQ
-A KUBE-SEP-ELDTPJ5ZEGKCH737 -m comment --comment shop/front:https -m recent --name KUBE-SEP-ELDTPJ5ZEGKCH737 --set -m tcp -p tcp -j DNAT --to-destination 10.244.2.31:8443
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
COMMIT
`;

async function shop() {
  const harness = fakeHarness();
  const plans = [catalog('10.244.1.7', '10.244.2.9'), front('10.244.1.30', '10.244.2.31')] as const;
  await harness.full(...plans);
  return { harness, plans };
}

test('a full sync writes everything', async () => {
  const { harness } = await shop();
  assert.equal(harness.tables.restores.at(-1), whole);
  assert.deepEqual(harness.tables.calls.slice(0, 2), ['ensureJumps', 'ensureCounters']);
});

test('rules are counted as upstream counts them', async () => {
  const { harness } = await shop();
  const counts = Object.fromEntries(harness.metrics);
  assert.deepEqual(counts, { 'total filter': 6, 'last filter': 6, 'total nat': 36, 'last nat': 36 });
});

test('without counters the rules that name them are plain or missing', async () => {
  const harness = fakeHarness();
  harness.tables.counters = { invalidDropped: false, localhostAccepted: false };
  await harness.full(catalog('10.244.1.7', '10.244.2.9'), front('10.244.1.30', '10.244.2.31'));
  const expected = whole
    .replace(' -m nfacct --nfacct-name ct_state_invalid_dropped_pkts', '')
    .replace(/.*localhost_nps_accepted_pkts.*\n/, '');
  assert.equal(harness.tables.restores.at(-1), expected);
  assert.equal(harness.metrics.get('total nat'), 35);
});

describe('one endpoint replaced', () => {
  const written = `*nat
:KUBE-SEP-OIU6TTP2XRJ7IIY4 - [0:0]
:KUBE-SEP-VGF64YYBPRQSUG5T - [0:0]
:KUBE-SVC-ITBI3OHKD3FRXPDK - [0:0]
-A KUBE-SVC-ITBI3OHKD3FRXPDK -m comment --comment "shop/catalog:http cluster IP" -m tcp -p tcp -d 10.96.10.20 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-SVC-ITBI3OHKD3FRXPDK -m comment --comment "shop/catalog:http -> 10.244.1.7:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-NTC2IGLNX522ZIZR
-A KUBE-SVC-ITBI3OHKD3FRXPDK -m comment --comment "shop/catalog:http -> 10.244.2.12:8080" -j KUBE-SEP-OIU6TTP2XRJ7IIY4
-A KUBE-SEP-OIU6TTP2XRJ7IIY4 -m comment --comment shop/catalog:http -s 10.244.2.12 -j KUBE-MARK-MASQ
-A KUBE-SEP-OIU6TTP2XRJ7IIY4 -m comment --comment shop/catalog:http -m tcp -p tcp -j DNAT --to-destination 10.244.2.12:8080
-X KUBE-SEP-VGF64YYBPRQSUG5T
COMMIT
`;

  // Upstream also writes the filter table, the shared chains of nat, and the chain of the endpoint that stayed.
  test('writes the chains that changed, and nothing else', async () => {
    const { harness, plans } = await shop();
    const before = harness.tables.calls.length;
    await harness.change(catalog('10.244.1.7', '10.244.2.12'), plans[1]);
    assert.deepEqual(harness.tables.calls.slice(before), [written]);
  });

  test('counts all rules, and those it wrote', async () => {
    const { harness, plans } = await shop();
    await harness.change(catalog('10.244.1.7', '10.244.2.12'), plans[1]);
    const counts = Object.fromEntries(harness.metrics);
    assert.deepEqual(counts, { 'total filter': 6, 'last filter': 0, 'total nat': 36, 'last nat': 5 });
  });

  test('leaves what a full sync would leave', async () => {
    const { harness, plans } = await shop();
    const catalogNow = catalog('10.244.1.7', '10.244.2.12');
    await harness.change(catalogNow, plans[1]);
    const fresh = fakeHarness();
    await fresh.full(catalogNow, plans[1]);
    assert.deepEqual(harness.tables.contents, fresh.tables.contents);
  });
});

test('without a local endpoint, outside traffic is dropped', async () => {
  const { harness, plans } = await shop();
  await harness.change(plans[0], front('10.244.2.31'));
  const { contents } = harness.tables;
  assert.equal(contents['nat KUBE-SVL-VPWLIZ4UCZR3AVHA'], undefined);
  assert.deepEqual(contents['nat KUBE-EXT-VPWLIZ4UCZR3AVHA']?.length, 3);
  assert.deepEqual(contents['filter KUBE-EXTERNAL-SERVICES'], [
    '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/front:https has no local endpoints" -m tcp -p tcp -d 198.51.100.10 --dport 443 -j DROP',
    '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/front:https has no local endpoints" -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 31443 -j DROP',
  ]);
  assert.equal(contents['filter KUBE-PROXY-FIREWALL']?.length, 1);
});

test('without any endpoint, all traffic is rejected and no chain is left', async () => {
  const { harness, plans } = await shop();
  await harness.change(plans[0], front());
  const { contents } = harness.tables;
  assert.deepEqual(
    Object.keys(contents).filter((chain) => chain.includes('VPWLIZ4UCZR3AVHA')),
    [],
  );
  const filter = ['SERVICES', 'EXTERNAL-SERVICES', 'NODEPORTS', 'PROXY-FIREWALL'].flatMap(
    (chain) => contents[`filter KUBE-${chain}`],
  );
  assert.deepEqual(filter, [
    '-A KUBE-SERVICES -m comment --comment "shop/front:https has no endpoints" -m tcp -p tcp -d 10.96.77.4 --dport 443 -j REJECT',
    '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/front:https has no endpoints" -m tcp -p tcp -d 198.51.100.10 --dport 443 -j REJECT',
    '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/front:https has no endpoints" -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 31443 -j REJECT',
    '-A KUBE-NODEPORTS -m comment --comment "shop/front:https health check node port" -m tcp -p tcp --dport 32100 -j ACCEPT',
  ]);
});
