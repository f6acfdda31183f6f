import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { settings } from '../../../test/ipvs/harness.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import { DesiredState } from './desired.ts';
import { interfaceFacts } from './interface-facts.ts';
import { restoreInput } from './rules.ts';
import type { IpsetName } from './sets.ts';
import type { IpvsSettings } from './settings.ts';

const golden = `*nat
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-LOAD-BALANCER - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A KUBE-SERVICES -s 127.0.0.0/8 -j RETURN
-A KUBE-POSTROUTING -m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE
-A KUBE-SERVICES -m comment --comment "Kubernetes service lb portal" -m set --match-set KUBE-LOAD-BALANCER dst,dst -j KUBE-LOAD-BALANCER
-A KUBE-NODE-PORT -p tcp -m comment --comment "Kubernetes nodeport TCP port for masquerade purpose" -m set --match-set KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP dst,dst ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
-A KUBE-SERVICES -m set --match-set KUBE-LOAD-BALANCER dst,dst -j ACCEPT
-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000
COMMIT
*filter
:KUBE-FORWARD - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-IPVS-OUT-FILTER - [0:0]
-A KUBE-PROXY-FIREWALL -m comment --comment "Kubernetes service load balancer ip + port for load balancer with sourceRange" -m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j KUBE-SOURCE-RANGES-FIREWALL
-A KUBE-SOURCE-RANGES-FIREWALL -m comment --comment "Kubernetes service load balancer ip + port + source cidr for packet filter purpose" -m set --match-set KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
-A KUBE-IPVS-OUT-FILTER -s 203.0.113.10 -m ipvs --vaddr 203.0.113.10 --vproto tcp --vport 80 -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-NODE-PORT -m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT
-A KUBE-IPVS-FILTER -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT
COMMIT
`;

test('a load balancer with a source range, character by character', () => {
  const desired = new DesiredState(settings);
  desired.setFacts(interfaceFacts(settings, ['192.0.2.5']));
  const plan = planOf(
    {
      clusterIP: '10.96.0.10',
      nodePort: 30080,
      loadBalancerVIPs: ['203.0.113.10'],
      sourceRanges: ['198.51.100.0/24'],
    },
    [{ ip: '10.244.1.2', local: true }],
  );
  desired.place(plan.port.key, plan);
  assert.equal(desired.rules(), golden);
});

/** Rules of one chain of the nat or filter table, without the chain. */
function rulesOf(chain: string, used: readonly IpsetName[], overrides: Partial<IpvsSettings> = {}): string[] {
  const input = restoreInput({ ...settings, ...overrides }, (set) => used.includes(set), []);
  return input.split('\n').flatMap((line) => {
    const [, name, rule = ''] = /^-A (\S+) (.*)$/.exec(line) ?? [];
    return name === chain ? [rule] : [];
  });
}

test('what is masqueraded on the way to a cluster IP', () => {
  const comment = '-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose"';
  const match = `${comment} -m set --match-set KUBE-CLUSTER-IP`;
  const rows: readonly (readonly [LocalDetector, boolean, string])[] = [
    [{ kind: 'cidr', cidr: '10.244.0.0/16' }, false, 'dst,dst ! -s 10.244.0.0/16'],
    [{ kind: 'interface', name: 'cbr0' }, false, 'dst,dst ! -i cbr0'],
    [{ kind: 'prefix', prefix: 'veth' }, false, 'dst,dst ! -i veth+'],
    [{ kind: 'none' }, false, 'src,dst'],
    [{ kind: 'none' }, true, 'dst,dst'],
    [{ kind: 'interface', name: 'cbr0' }, true, 'dst,dst'],
  ];
  for (const [localDetector, masqueradeAll, text] of rows) {
    const rules = rulesOf('KUBE-SERVICES', ['KUBE-CLUSTER-IP'], { localDetector, masqueradeAll });
    assert.ok(rules.includes(`${match} ${text} -j KUBE-MARK-MASQ`), rules.join('\n'));
  }
});

test('sets in use add rules to their chains in a fixed order', () => {
  const targets = (chain: string, used: readonly IpsetName[]) =>
    rulesOf(chain, used).map((rule) =>
      rule.replace(/-m comment --comment "[^"]*" /, '').replace('-m set --match-set ', ''),
    );
  assert.deepEqual(targets('KUBE-LOAD-BALANCER', ['KUBE-LOAD-BALANCER-LOCAL']), [
    'KUBE-LOAD-BALANCER-LOCAL dst,dst -j RETURN',
    '-j KUBE-MARK-MASQ',
  ]);
  assert.deepEqual(
    targets('KUBE-NODE-PORT', [
      'KUBE-NODE-PORT-SCTP-HASH',
      'KUBE-NODE-PORT-LOCAL-SCTP-HASH',
      'KUBE-NODE-PORT-UDP',
    ]),
    [
      '-p udp KUBE-NODE-PORT-UDP dst -j KUBE-MARK-MASQ',
      '-p sctp KUBE-NODE-PORT-LOCAL-SCTP-HASH dst,dst -j RETURN',
      '-p sctp KUBE-NODE-PORT-SCTP-HASH dst,dst -j KUBE-MARK-MASQ',
      'KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT',
    ],
  );
  const firewall: IpsetName[] = ['KUBE-LOAD-BALANCER-SOURCE-IP', 'KUBE-LOAD-BALANCER-SOURCE-CIDR'];
  assert.deepEqual(targets('KUBE-SOURCE-RANGES-FIREWALL', firewall), [
    'KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN',
    'KUBE-LOAD-BALANCER-SOURCE-IP dst,dst,src -j RETURN',
    '-j DROP',
  ]);
  assert.deepEqual(targets('KUBE-SERVICES', []), [
    '-s 127.0.0.0/8 -j RETURN',
    '-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT',
  ]);
});
