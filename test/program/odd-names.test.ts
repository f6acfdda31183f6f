import { after, afterEach, before, describe, it } from 'node:test';
import { enterNamespace, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { ctl, eventuallyReported } from '../ctl/ctl.ts';
import { eventually } from '../eventually.ts';
import { Site } from './started.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

/** Names that no API server admits, but that a manifest or a faulty one may hold. */
const oddNames = ['a\0b', 'line\nbreak', 'say "no"', 'x'.repeat(300)];

describe('Services with port names that the API forbids', { skip: skip ?? false }, () => {
  let site: Site;

  before(async () => {
    site = await Site.open();
    for (const [i, name] of oddNames.entries()) {
      const clusterIP = `10.96.1.${i}`;
      const { metadata } = apiService(`odd-${i}`);
      const spec = { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ipFamilies: ['IPv4'] };
      site.api.put('services', { metadata, spec: { ...spec, ports: [{ name, port: 80, protocol: 'TCP' }] } });
    }
  });
  afterEach(() => site.stopAll());
  after(() => site.close());

  for (const [i, mode] of ['nftables', 'userspace', 'iptables'].entries()) {
    it(`are reported with field and value in ${mode} mode, and other Services work and change`, async () => {
      const proxy = await site.start(site.writeConfig({ mode }));
      const add = (name: string, clusterIP: string) => {
        site.api.put('services', apiService(name, 80, { clusterIP }));
        site.api.put('endpointSlices', apiSlice(name, ['10.244.0.5']));
        const isProgrammed = () => run('nft', 'list', 'ruleset').includes(clusterIP);
        return eventually(`${clusterIP} in the kernel`, isProgrammed, { onTimeout: () => proxy.stderr });
      };
      await add(`web-${i}`, `10.96.2.${i}`);
      await add(`later-${i}`, `10.96.3.${i}`);
      const reason = 'Service shop/odd-0: spec.ports[0].name: "a\\u0000b" has a control character';
      const isReported = async () => (await ctl('status')).stdout.includes(reason);
      await eventuallyReported('the reason in the status', isReported, { onTimeout: () => proxy.stderr });
    });
  }
});
