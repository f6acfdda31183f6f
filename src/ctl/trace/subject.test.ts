import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceReport } from '../../../test/service-report.ts';
import { API_VERSION } from '../../inspect/api.ts';
import { formatCIDR } from '../../model/ip.ts';
import { subjectOf } from './subject.ts';

const web = serviceReport({
  clusterIP: '10.96.0.1',
  nodePort: 30080,
  externalIPs: ['198.51.100.1'],
  loadBalancerIPs: ['198.18.0.1'],
  external: { action: 'forward', reason: '' },
});

/** The packets that a trace with these arguments follows, in words. */
async function interests(...args: string[]): Promise<string[]> {
  const items = args.includes('shop/none') ? [] : [web];
  const services = async () => ({ apiVersion: API_VERSION, kind: 'ServiceList', items }) as const;
  const { interests: found } = await subjectOf(args, { services }, {});
  return found.map(({ protocol, source, destination, port }) => {
    const [from, to] = [source ?? 'any', destination].map((one) =>
      typeof one === 'string' ? one : formatCIDR(one),
    );
    return `${protocol} ${from} ${to} ${port ?? 'any'}`;
  });
}

test('a Service means all its addresses and its node port', async () => {
  assert.deepEqual(await interests('shop/web'), [
    'TCP any 10.96.0.1/32 80',
    'TCP any 198.51.100.1/32 80',
    'TCP any 198.18.0.1/32 80',
    'TCP any node 30080',
  ]);
});

test('a source may be an address, a CIDR or the node', async () => {
  assert.deepEqual(await interests('10.244.1.5', '10.96.0.1:53/udp'), ['UDP 10.244.1.5/32 10.96.0.1/32 53']);
  assert.deepEqual(await interests('10.244.0.0/16', '10.96.0.1:80'), ['TCP 10.244.0.0/16 10.96.0.1/32 80']);
  assert.deepEqual(await interests('node', '[fd00::1]:80'), ['TCP node fd00::1/128 80']);
  assert.deepEqual((await interests('node', 'shop/web'))[0], 'TCP node 10.96.0.1/32 80');
});

test('a destination without a port means any port, TCP and UDP', async () => {
  const any = ['TCP node 10.96.0.1/32 any', 'UDP node 10.96.0.1/32 any'];
  assert.deepEqual(await interests('node', '10.96.0.1'), any);
});

test('arguments that make no sense are refused with the value at fault', async () => {
  await assert.rejects(
    interests('somewhere', '10.96.0.1:80'),
    /SRC "somewhere" is not an address, a CIDR or "node"/,
  );
  await assert.rejects(
    interests('fd00::1', '10.96.0.1:80'),
    /fd00::1 and destination 10\.96\.0\.1:80 are of different families/,
  );
  await assert.rejects(interests('fd00::1', 'shop/web'), /are of different families/);
  await assert.rejects(interests('node', '10.96.0.1:0'), /port "0" is not a number from 1 to 65535/);
  await assert.rejects(interests('node', '10.96.0.1:80/ICMP'), /protocol "ICMP" is none of TCP, UDP, SCTP/);
  await assert.rejects(interests('node', '10.96.0.1:80:90'), /IPv6 addresses need brackets/);
  await assert.rejects(interests('shop/none'), /no service port is called "shop\/none"/);
});
