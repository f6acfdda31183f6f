import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServiceReport } from '../inspect/api.ts';
import { isServiceDestination, packetToService } from './service-destination.ts';

for (const [text, isService] of [
  ['web', true],
  ['shop/web', true],
  ['web:80', true],
  ['shop/web:http', true],
  ['shop/web:http/TCP', true],
  ['web/TCP', true],
  ['10.96.0.1:80', false],
  ['10.96.0.1', false],
  ['10.96.0.1:80/UDP', false],
  ['10.96.0.1/TCP', false],
  ['[fd00::1]:80', false],
  ['fd00::1:80', false],
  ['80', false],
  ['', false],
] as const) {
  test(`the destination ${JSON.stringify(text)} is ${isService ? 'the name of a Service' : 'an address'}`, () =>
    assert.equal(isServiceDestination(text), isService));
}

function report(port: Partial<ServiceReport>): ServiceReport {
  const base = { namespace: 'shop', name: 'web', portName: '', family: 'IPv4', clusterIP: '10.96.0.1' };
  return { ...base, port: 80, protocol: 'TCP', ...port } as ServiceReport;
}

const six = report({ family: 'IPv6', clusterIP: 'fd00::1' });

test('a packet to a Service goes to its cluster IP in the family of the source', () => {
  const both = [report({}), six];
  const to = (source: string) => packetToService(source, 'web', both).destination;
  assert.deepEqual([to('node'), to('10.0.0.1'), to('fd00::9')], ['10.96.0.1', '10.96.0.1', 'fd00::1']);
  assert.throws(() => packetToService('10.0.0.1', 'web', [six]), /shop\/web has no IPv4 address/);
});

test('a packet to one port of several protocols is TCP, and to a UDP port UDP', () => {
  const udp = report({ protocol: 'UDP' });
  assert.equal(packetToService('node', 'web', [udp, report({})]).protocol, 'TCP');
  assert.equal(packetToService('node', 'web', [udp]).protocol, 'UDP');
});

test('a destination that means several ports or Services is an error that lists them', () => {
  const https = report({ portName: 'https', port: 443 });
  const http = report({ portName: 'http' });
  assert.throws(
    () => packetToService('node', 'web', [https, http, six]),
    /"web" means several service ports: shop\/web, shop\/web:http, shop\/web:https$/,
  );
  const blog = report({ namespace: 'blog' });
  assert.throws(() => packetToService('node', 'web', [report({}), blog]), /: blog\/web, shop\/web$/);
  assert.throws(() => packetToService('node', 'wbe', []), /no service port is called "wbe"/);
});
