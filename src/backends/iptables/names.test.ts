import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servicePort } from '../../../test/cluster/objects.ts';
import { endpointChain, isServiceChain, serviceNames } from './names.ts';

const known = [
  { service: 'ns1/svc1:p80', hash: 'XPGD46QRK7WJZT7O' },
  { service: 'ns2/svc2:p80', hash: 'GNZBNJ2PO5MGZ6GT' },
  { service: 'default/kubernetes:https', hash: 'NPX46M4PTMTKRN6Y' },
  { service: 'default/web', hash: 'LOLE4ISW44XBNF3G' },
  { service: 'shop/catalog:http', hash: 'ITBI3OHKD3FRXPDK' },
];

for (const { service, hash } of known) {
  test(`chains of ${service} end in ${hash}`, () => {
    const names = namesOf(service);
    assert.deepEqual(names, {
      name: service,
      protocol: 'tcp',
      svc: `KUBE-SVC-${hash}`,
      svl: `KUBE-SVL-${hash}`,
      ext: `KUBE-EXT-${hash}`,
      fw: `KUBE-FW-${hash}`,
    });
  });
}

const endpoints = [
  { service: 'ns1/svc1:p80', id: '10.180.0.1:80', chain: 'KUBE-SEP-SXIVWICOYRO3J4NJ' },
  { service: 'ns4/svc4:p8082', id: '10.4.0.1:8082', chain: 'KUBE-SEP-SU5STNODRYEWJAUF' },
  { service: 'ns1/svc1:p80', id: '[fd00:10:180::1]:80', chain: 'KUBE-SEP-OGYCNMB4EMRUSJ6N' },
];

for (const { service, id, chain } of endpoints) {
  test(`endpoint ${id} of ${service} has chain ${chain}`, () => {
    assert.equal(endpointChain(namesOf(service), id), chain);
  });
}

test('the protocol is part of the name', () => {
  const tcp = serviceNames(servicePort({ clusterIP: '10.96.0.1', portName: 'dns' }));
  const udp = serviceNames(servicePort({ clusterIP: '10.96.0.1', portName: 'dns', protocol: 'UDP' }));
  assert.equal(udp.protocol, 'udp');
  assert.notEqual(udp.svc, tcp.svc);
});

test('chains of a service port have the same names in both families', () => {
  const [v4, v6] = ['10.96.0.1', 'fd00:96::1'].map((clusterIP) => serviceNames(servicePort({ clusterIP })));
  assert.deepEqual(v4, v6);
});

test('only chains of service ports are ours to remove', () => {
  for (const prefix of ['SVC', 'SVL', 'EXT', 'FW', 'SEP']) assert.ok(isServiceChain(`KUBE-${prefix}-X`));
  for (const chain of [
    'KUBE-SERVICES',
    'KUBE-XLB-X',
    'KUBE-MARK-DROP',
    'KUBE-FIREWALL',
    'MY-KUBE-SVC-X',
    'KUBE-SVC',
  ]) {
    assert.ok(!isServiceChain(chain), chain);
  }
});

function namesOf(text: string) {
  const [, namespace = '', name = '', portName = ''] = /^([^/]+)\/([^:]+):?(.*)$/.exec(text) ?? [];
  return serviceNames(servicePort({ clusterIP: '10.96.0.1', namespace, name, portName }));
}
