import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { run as command, enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { flavourUnavailable, withoutIptables } from '../iptables/flavours.ts';
import { kubeProxy, kubeProxyctl, type Outcome, run } from './run.ts';
import { Site } from './started.ts';

const skip = labUnavailable() ?? flavourUnavailable('nft') ?? flavourUnavailable('legacy') ?? false;
if (skip === false) enterNamespace(import.meta.url);

/** Chains of the proxy, the kubelet and others, as iptables mode of any release may leave them. */
const rules = `*nat
:KUBE-SERVICES - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:OTHER - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "not -j KUBE-SERVICES" -j OTHER
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-XPGD46QRK7WJZT7O
-A KUBE-SVC-XPGD46QRK7WJZT7O -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
`;
const kept = /:KUBE-KUBELET-CANARY.*:OTHER.*-A OUTPUT [^\n]* -j OTHER/s;

describe('what modes left in the kernel', { skip }, () => {
  let site: Site;

  before(async () => {
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
  });
  afterEach(() => site.stopAll());
  after(() => site.close());

  const flush = (flavour: string) => {
    for (const verb of ['-F', '-X']) command(`iptables-${flavour}`, '-t', 'nat', verb);
  };
  const nftRules = () => command('iptables-nft-save') + command('ip6tables-nft-save');
  const legacyRules = () => command('iptables-legacy-save') + command('ip6tables-legacy-save');
  const restore = (flavour: string, text: string) =>
    command('sh', '-c', `printf '%s' '${text}' | iptables-${flavour}-restore`);
  const cleanUp = (...args: readonly string[]): Promise<Outcome> => run(kubeProxy, ['--cleanup', ...args]);

  describe('clean-up with the rules of a stopped proxy in iptables mode', () => {
    before(async () => {
      const proxy = await site.start(site.writeConfig({ mode: 'iptables' }));
      await eventually('the rules', () => nftRules().includes('shop/web:http cluster IP'));
      await proxy.kill();
      command('nft', 'add table ip kube-proxy');
    });

    it('as a dry run prints what it would remove, by kind and count, and removes nothing', async () => {
      const ruleset = command('nft', 'list', 'ruleset');
      const { code, stdout, stderr } = await cleanUp('--dry-run');
      assert.equal(code, 2, stderr);
      assert.match(stdout, /^A clean-up would remove:\n/);
      assert.match(
        stdout,
        /^ {2}\d+ iptables chains and \d+ iptables rules in IPv4 table nat \(iptables-nft\): KUBE-/m,
      );
      assert.match(
        stdout,
        /^ {2}6 iptables chains and \d+ iptables rules in IPv6 table filter \(iptables-nft\): KUBE-/m,
      );
      assert.match(stdout, /^ {2}1 nf_tables table: ip kube-proxy$/m);
      assert.equal(command('nft', 'list', 'ruleset'), ruleset);
    });

    it('as a dry run prints the same as JSON', async () => {
      const { code, stdout } = await cleanUp('--dry-run', '-o', 'json');
      assert.equal(code, 2);
      const { kind, dryRun, removed, left } = JSON.parse(stdout);
      assert.deepEqual([kind, dryRun, left], ['CleanUp', true, []]);
      const tables = removed.filter((group: { kind: string }) => group.kind === 'nf_tables table');
      assert.deepEqual(tables, [
        {
          kind: 'nf_tables table',
          family: 'IPv4',
          place: null,
          count: 1,
          names: ['ip kube-proxy'],
          reason: null,
        },
      ]);
    });

    it('without CAP_NET_ADMIN fails at once with one line that says what is missing', async () => {
      const drop = ['--bounding-set=-net_admin', '--inh-caps=-net_admin', kubeProxy];
      for (const args of [['--cleanup'], ['--cleanup', '--dry-run']]) {
        const { code, stdout, stderr } = await run('setpriv', [...drop, ...args]);
        assert.deepEqual([code, stdout], [1, '']);
        assert.match(stderr, /^E.*"Failed to clean up" err="CAP_NET_ADMIN is missing; run it as root"\n$/);
      }
    });

    it('prints what it removed, without iptables too, and the second time that there was nothing', async () => {
      const listed = (await cleanUp('--dry-run')).stdout;
      const { code, stdout, stderr } = await withoutIptables(() => cleanUp());
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^Removed:\n/);
      assert.equal(
        stdout,
        listed.replace('A clean-up would remove', 'Removed').replace('It would keep', 'Kept'),
      );
      assert.doesNotMatch(nftRules(), /KUBE-(?!FIREWALL)/);
      const again = await cleanUp();
      assert.equal(again.code, 0, again.stderr);
      assert.doesNotMatch(again.stdout, /Removed/);
    });
  });

  it('clean-up keeps chains of the kubelet and of others, in both kinds of iptables', async () => {
    for (const flavour of ['nft', 'legacy']) {
      restore(flavour, rules);
      const { code, stdout, stderr } = await cleanUp();
      assert.equal(code, 0, stderr);
      assert.match(
        stdout,
        new RegExp(
          `^ {2}3 iptables chains and 5 iptables rules in IPv4 table nat \\(iptables-${flavour}\\)`,
          'm',
        ),
      );
      const left = command(`iptables-${flavour}-save`, '-t', 'nat');
      assert.match(left, kept);
      assert.doesNotMatch(left, /KUBE-(SERVICES |SVC|MARK)/);
      flush(flavour);
    }
  });

  it('clean-up empties a chain that a rule of another program leads to, and says so with exit code 1', async () => {
    restore('nft', `${rules.replace('COMMIT\n', '')}-A OTHER -j KUBE-MARK-MASQ\nCOMMIT\n`);
    const { code, stdout, stderr } = await cleanUp();
    assert.equal(code, 1);
    assert.match(stderr, /encountered an error while tearing down rules/);
    assert.match(
      stdout,
      /^Still there:\n {2}1 iptables chain in .*: KUBE-MARK-MASQ\n {2}Reason: a rule of chain OTHER leads to it\.$/m,
    );
    assert.doesNotMatch(nftRules(), /-A KUBE-MARK|KUBE-SVC/);
    flush('nft');
  });

  it('rules of iptables-nft are found and removed by a start in nftables mode without iptables', async () => {
    restore('nft', rules);
    const config = site.writeConfig();
    const { code, stdout, stderr } = await run(kubeProxy, ['--config', config, '--dry-run']);
    assert.equal(code, 2, stderr);
    assert.match(
      stdout,
      /^Left by other modes, to be removed after the first sync:\n {2}3 iptables chains and 5 iptables rules in IPv4 table nat/m,
    );
    const json = await run(kubeProxy, ['--config', config, '--dry-run', '--output=json']);
    const report = JSON.parse(json.stdout);
    assert.deepEqual([report.kind, report.mode, report.nodeName], ['DryRun', 'nftables', 'node-a']);
    assert.ok(report.families[0].changes.length > 0);
    assert.equal(report.leftovers.removed[0].count, 3);
    assert.match(nftRules(), /KUBE-SERVICES/);

    const proxy = await withoutIptables(() => site.start(config));
    await proxy.logs(/"Removed what another mode left" removed="3 iptables chains, 5 iptables rules"/);
    assert.match(command('iptables-nft-save', '-t', 'nat'), kept);
    assert.doesNotMatch(nftRules(), /:KUBE-(?!KUBELET|FIREWALL)/);
    const status = await run(kubeProxyctl, ['status']);
    assert.equal(status.code, 0, status.stdout);
  });

  it('rules of legacy iptables that cannot be removed are reported by everything', async () => {
    restore('legacy', rules);
    const reason = 'there is no iptables-legacy here to remove rules of legacy iptables; use the full image';
    const summary = `3 iptables chains, 5 iptables rules (${reason})`;
    const cleaned = await withoutIptables(() => cleanUp());
    assert.equal(cleaned.code, 1);
    assert.match(cleaned.stdout, /^Still there:$/m);
    assert.ok(cleaned.stdout.endsWith(`  Reason: ${reason}.\n`), cleaned.stdout);
    const unprivileged = [
      '--bounding-set=-net_raw',
      '--inh-caps=-net_raw',
      kubeProxy,
      '--cleanup',
      '--dry-run',
    ];
    const listed = await withoutIptables(() => run('/usr/bin/setpriv', unprivileged));
    assert.deepEqual([listed.code, listed.stderr], [2, '']);
    assert.match(listed.stdout, /^It could not remove:$/m);
    assert.match(legacyRules(), /-A KUBE-SVC/);

    const proxy = await withoutIptables(() => site.start(site.writeConfig()));
    await proxy.logs(/"Rules that another mode left are still there" left="3 iptables chains/);
    const status = await run(kubeProxyctl, ['status']);
    assert.equal(status.code, 2);
    assert.match(status.stdout, /: degraded\n/);
    assert.ok(status.stdout.includes(`are still there: ${summary}`), status.stdout);
    const isAnnounced = () => site.api.store.list('events').some(({ raw }) => raw.reason === 'LeftoverRules');
    await eventually('the event', isAnnounced);
    assert.match(legacyRules(), /-A KUBE-SVC/);
    await proxy.kill();

    const full = await site.start(site.writeConfig());
    await full.logs(/"Removed what another mode left"/);
    assert.match(legacyRules(), kept);
    assert.doesNotMatch(legacyRules(), /:KUBE-S/);
  });
});
