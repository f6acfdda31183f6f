/** Nodes on which both kinds of iptables hold rules of kube-proxy. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { run as command, enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { kubeProxy, run } from '../program/run.ts';
import { Site } from '../program/started.ts';
import { flavourUnavailable, useFlavour } from './flavours.ts';

const skip = labUnavailable() ?? flavourUnavailable('legacy') ?? flavourUnavailable('nft') ?? false;
if (!skip) enterNamespace(import.meta.url);

const warning = /"Both kinds of iptables hold rules of kube-proxy/g;

for (const [inUse, other] of [
  ['nft', 'legacy'],
  ['legacy', 'nft'],
] as const) {
  describe(`iptables-${inUse} in use, rules in iptables-${other}`, { skip }, () => {
    let site: Site;
    before(async () => {
      useFlavour(inUse);
      site = await Site.open();
    });
    afterEach(() => site.stopAll());
    after(() => site.close());

    const rules = (flavour: string) =>
      command(`iptables-${flavour}-save`) + command(`ip6tables-${flavour}-save`);

    test('the program warns of the mix once and writes rules with the flavour in use', async () => {
      command(`iptables-${other}`, '-t', 'nat', '-N', 'KUBE-SERVICES');
      command(`iptables-${other}`, '-t', 'nat', '-N', 'KUBE-SVC-XPGD46QRK7WJZT7O');
      const proxy = await site.start(site.writeConfig({ mode: 'iptables' }));
      assert.equal(proxy.stderr.match(warning)?.length, 1, proxy.stderr);
      assert.match(
        proxy.stderr,
        new RegExp(`inUse="${inUse}" alsoFound="${other}" IPv4="KUBE-SERVICES, KUBE-SVC-XPGD46QRK7WJZT7O"`),
      );
      assert.doesNotMatch(rules(other), /KUBE-PROXY-CANARY|KUBE-POSTROUTING/);
    });

    test('clean-up removes the rules of both flavours', async () => {
      for (let i = 0; i < 2; i++) {
        const { code, stderr } = await run(kubeProxy, [
          '--config',
          site.writeConfig({ mode: 'iptables' }),
          '--cleanup',
        ]);
        assert.equal(code, 0, stderr);
        for (const flavour of [inUse, other]) assert.doesNotMatch(rules(flavour), /KUBE-(?!FIREWALL)/);
      }
    });

    test('without a mix the program warns of nothing', async () => {
      const proxy = await site.start(site.writeConfig({ mode: 'iptables' }));
      assert.doesNotMatch(proxy.stderr, warning);
      await proxy.kill();
      await run(kubeProxy, ['--config', site.writeConfig({ mode: 'iptables' }), '--cleanup']);
    });
  });
}
