import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
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

  const flush = (flavour: string, table = 'nat') => {
    for (const verb of ['-F', '-X']) command(`iptables-${flavour}`, '-t', table, verb);
  };
  const nftRules = () => command('iptables-nft-save') + command('ip6tables-nft-save');
  const legacyRules = () => command('iptables-legacy-save') + command('ip6tables-legacy-save');
  const restore = (flavour: string, text: string) =>
    command('sh', '-c', `printf '%s' '${text}' | iptables-${flavour}-restore`);
  const cleanUp = (...args: readonly string[]): Promise<Outcome> => run(kubeProxy, ['--cleanup', ...args]);

  const routeLocalnet = '/proc/sys/net/ipv4/conf/all/route_localnet';

  /** Leaves the rules of a proxy in iptables mode that found this value of route_localnet. */
  async function leaveRules(before: number): Promise<void> {
    writeFileSync(routeLocalnet, String(before));
    const proxy = await site.start(site.writeConfig({ mode: 'iptables' }));
    await eventually('the rules', () => nftRules().includes('shop/web:http cluster IP'));
    await proxy.kill();
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '1\n');
  }

  describe('clean-up with the rules of a stopped proxy in iptables mode', () => {
    before(async () => {
      await leaveRules(0);
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
        /^ {2}7 iptables chains and \d+ iptables rules in IPv6 table filter \(iptables-nft\): KUBE-/m,
      );
      assert.match(stdout, /^ {2}2 nf_tables tables: ip kube-localnet, ip kube-proxy$/m);
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
          count: 2,
          names: ['ip kube-localnet', 'ip kube-proxy'],
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
      assert.match(stdout, /^ {2}1 kernel parameter: net\.ipv4\.conf\.all\.route_localnet=1$/m);
      assert.doesNotMatch(nftRules(), /KUBE-/);
      assert.equal(readFileSync(routeLocalnet, 'utf8'), '0\n');
      const again = await cleanUp();
      assert.deepEqual([again.code, again.stdout], [0, 'Nothing to remove.\n'], again.stderr);
    });
  });

  it('clean-up while a proxy runs names the proxy and removes nothing', async () => {
    writeFileSync(routeLocalnet, '0');
    const proxy = await site.start(site.writeConfig({ mode: 'iptables' }));
    await eventually('the rules', () => nftRules().includes('shop/web:http cluster IP'));
    const copy =
      /err="kube-proxy-ts runs here \(pid \d+, iptables mode, .+\) and would write its rules again; stop it first"/;
    const refused = await cleanUp();
    assert.deepEqual([refused.code, refused.stdout], [1, ''], refused.stderr);
    assert.match(refused.stderr, copy);
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '1\n');
    const dry = await cleanUp('--dry-run');
    assert.equal(dry.code, 2);
    assert.match(dry.stdout, /^A clean-up would remove:\n/);
    assert.match(dry.stderr, copy);
    await proxy.kill();
    const done = await cleanUp();
    assert.deepEqual([done.code, done.stderr], [0, '']);
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '0\n');
  });

  it('clean-up keeps route_localnet when it was 1 before, and with it the chain that protects loopback', async () => {
    await leaveRules(1);
    for (let i = 0; i < 2; i++) {
      const { code, stdout, stderr } = await cleanUp();
      assert.equal(code, 0, stderr);
      const [, reasons = ''] = stdout.split('Kept:\n');
      assert.match(
        reasons,
        /^ {2}1 kernel parameter: .*\n {2}Reason: nothing shows that this program set it/,
      );
      assert.match(reasons, /^ {2}Reason: it keeps other machines from loopback addresses while /m);
      assert.match(
        command('iptables-nft-save'),
        /-A INPUT -j KUBE-FIREWALL\n(?:.*\n)*-A KUBE-FIREWALL .*-j DROP/,
      );
      assert.equal(readFileSync(routeLocalnet, 'utf8'), '1\n');
    }
    assert.doesNotMatch(command('ip6tables-nft-save'), /KUBE-FIREWALL/);
    flush('nft', 'filter');
  });

  it('clean-up keeps KUBE-FIREWALL and route_localnet where a kubelet or another program uses them', async () => {
    await leaveRules(0);
    command('iptables-nft', '-t', 'mangle', '-N', 'KUBE-KUBELET-CANARY');
    const withKubelet = await cleanUp();
    assert.match(withKubelet.stdout, /^ {2}Reason: a kubelet runs here, which may need it\.$/m);
    assert.match(withKubelet.stdout, /^ {2}Reason: the kubelet uses it, too\.$/m);
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '1\n');

    command('iptables-nft', '-t', 'mangle', '-X', 'KUBE-KUBELET-CANARY');
    command('iptables-nft', '-A', 'KUBE-FIREWALL', '-s', '198.51.100.1', '-j', 'DROP');
    const withOthers = await cleanUp();
    assert.match(withOthers.stdout, /^ {2}Reason: it has rules of another program\.$/m);
    assert.match(nftRules(), /-A KUBE-FIREWALL -s 198\.51\.100\.1/);
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '0\n');
    assert.deepEqual([withKubelet.code, withOthers.code], [0, 0]);
    flush('nft', 'filter');
  });

  it('a take-over by nftables mode keeps route_localnet and the mark, so that a later clean-up knows', async () => {
    await leaveRules(0);
    const proxy = await site.start(site.writeConfig());
    await proxy.logs(/"Removed what another mode left"/);
    await proxy.kill();
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '1\n');
    const { code, stderr } = await cleanUp();
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync(routeLocalnet, 'utf8'), '0\n');
    assert.doesNotMatch(nftRules(), /KUBE-/);
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
