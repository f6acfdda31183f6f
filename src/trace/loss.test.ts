import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Headers } from './journey.ts';
import { causesOfLoss, type LossFacts } from './loss.ts';

const headers: Headers = {
  family: 'IPv4',
  protocol: 6,
  source: '203.0.113.9',
  sourcePort: 40_000,
  destination: '10.244.2.7',
  port: 8080,
};
const lost = { headers, arrivedOn: 'eth1', targets: [] };
const afterPrerouting = { kind: 'lost', hook: 'prerouting', where: 'after' } as const;

/** A node with these routes (address → interface) and files below /proc. */
function facts(routes: Record<string, string>, files: Record<string, string> = {}): LossFacts {
  return {
    route: {
      interfaceTowards: async (address) => routes[address] ?? '',
      listAddresses: async () => [],
    },
    files: {
      read(path) {
        const text = files[path];
        if (text === undefined) throw new Error(`no ${path}`);
        return text;
      },
      write() {},
    },
  };
}

const conf = '/proc/sys/net/ipv4/conf';
const reachable = { '10.244.2.7': 'cni0', '203.0.113.9': 'eth0' };

test('a strict reverse path filter is named when the route back leads elsewhere', async () => {
  const files = { [`${conf}/all/rp_filter`]: '0\n', [`${conf}/eth1/rp_filter`]: '1\n' };
  assert.deepEqual(await causesOfLoss(afterPrerouting, lost, facts(reachable, files)), [
    'the reverse path filter (net.ipv4.conf.eth1.rp_filter is 1): the packet came by eth1, and the route to 203.0.113.9 leads to eth0',
  ]);
});

test('a loose reverse path filter is named only when no route leads back', async () => {
  const files = { [`${conf}/all/rp_filter`]: '2\n', [`${conf}/eth1/rp_filter`]: '1\n' };
  const [cause] = await causesOfLoss(afterPrerouting, lost, facts(reachable, files));
  assert.match(
    cause ?? '',
    /^the routing of the kernel: .* leads to cni0, and net\.ipv4\.conf\.eth1\.rp_filter is 2$/,
  );
  const [other] = await causesOfLoss(afterPrerouting, lost, facts({ '10.244.2.7': 'cni0' }, files));
  assert.match(other ?? '', /rp_filter is 2\): no route leads to 203\.0\.113\.9$/);
});

test('a missing route and a node that does not forward are named', async () => {
  const files = { [`${conf}/eth1/forwarding`]: '0\n' };
  assert.deepEqual(await causesOfLoss(afterPrerouting, lost, facts({}, files)), [
    'a missing route: none leads to 10.244.2.7',
    'the node, which does not forward: net.ipv4.conf.eth1.forwarding is 0',
  ]);
});

test('a source that is an address of the node is a martian', async () => {
  const own = { ...lost, headers: { ...headers, source: '127.0.0.1' } };
  const [cause] = await causesOfLoss(afterPrerouting, own, facts(reachable));
  assert.match(cause ?? '', /martian packets: the source 127\.0\.0\.1 is an address of this node itself/);
});

test('a packet of the node that gets lost at output has an endpoint without a route', async () => {
  const inside = { kind: 'lost', hook: 'output', where: 'inside' } as const;
  const own = { ...lost, arrivedOn: null, targets: ['10.244.2.7', '10.255.0.1'] };
  const [cause] = await causesOfLoss(inside, own, facts(reachable));
  assert.equal(cause, 'a missing route: none leads to 10.255.0.1');
});

test('a full connection table and legacy iptables are named where a packet gets lost inside of a hook', async () => {
  const files = {
    '/proc/sys/net/netfilter/nf_conntrack_count': '16\n',
    '/proc/sys/net/netfilter/nf_conntrack_max': '16\n',
    '/proc/net/ip_tables_names': 'nat\nfilter\n',
  };
  const causes = await causesOfLoss({ ...afterPrerouting, where: 'inside' }, lost, facts(reachable, files));
  assert.deepEqual(causes.slice(0, 2), [
    'the connection table, which is full: net.netfilter.nf_conntrack_max is 16',
    'legacy iptables, which has rules in tables filter, nat',
  ]);
});
