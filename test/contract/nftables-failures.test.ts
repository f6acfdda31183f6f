/** How nftables mode handles objects and transactions that the kernel refuses, on a real kernel. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { after, afterEach, before, describe, test } from 'node:test';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { SoleNode } from '../program/sole-node.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);

const FAILURES = 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"';
/** More refused services than the sync engine's limit of attempts without progress. */
const REFUSED = 20;
const SET_ASIDE = 'kubeproxy_ts_set_aside{';

describe('nftables mode and failures', { skip }, () => {
  let node: SoleNode;
  let other: ChildProcess | undefined;

  before(async () => {
    node = await SoleNode.open();
  });
  afterEach(async () => {
    other?.kill('SIGKILL');
    other = undefined;
    await node.stop();
    await node.nft('flush', 'ruleset');
    for (const { raw } of node.site.api.store.list('services')) {
      node.site.api.delete('services', 'shop', raw.metadata.name);
    }
  });
  after(() => node.close());

  const addressOf = (n: number): string => `10.96.0.${n}`;
  const works = (n: number): Promise<boolean> => node.answers(addressOf(n));
  const stillWorks = (n: number): Promise<boolean> => node.stillAnswers(addressOf(n));

  /** Puts the n-th service, with this process as its endpoint; `more` is added to its spec and status. */
  function put(n: number, more: { spec?: object; status?: object } = {}): void {
    const { metadata, spec, status } = apiService(`s${n}`, 80, { clusterIP: addressOf(n) });
    node.site.api.put('services', {
      metadata,
      spec: { ...(spec as object), ...more.spec },
      status: { ...(status as object), ...more.status },
    });
    node.site.api.put('endpointSlices', apiSlice(`s${n}`, [SoleNode.address]));
  }

  function eventsAbout(name: string): string[] {
    const events = node.site.api.store.list('events').map(({ raw }) => raw);
    return events.flatMap(({ reason, note, regarding }) => {
      const { name: about } = regarding as { name: string };
      return about === name && reason === 'FailedToProgram' ? [String(note)] : [];
    });
  }

  test('services that the kernel refuses are left out and reported, and programmed when it accepts them', async () => {
    put(1);
    await node.start();
    await node.eventually('the first service', () => works(1));
    // Before the next start, another program made the set for sources of this prefix length, with room for only one element.
    await node.kill();
    const spec = '{ type ipv4_addr . inet_proto . inet_service . ipv4_addr; size 1; }';
    await node.nft(`add set ip kube-proxy sources-24 ${spec}`);
    const refused = Array.from({ length: REFUSED }, (_, i) => 100 + i);
    for (const n of refused) {
      put(n, {
        spec: { type: 'LoadBalancer', loadBalancerSourceRanges: ['192.0.2.0/24', '203.0.113.0/24'] },
        status: { loadBalancer: { ingress: [{ ip: `198.51.100.${n}` }] } },
      });
    }
    put(3);
    await node.start();
    await node.eventually('the third service', () => works(3));
    await node.eventually('the report', async () => (await node.metric(SET_ASIDE)) === REFUSED);
    assert.ok(await stillWorks(1));
    assert.equal(await works(100), false);
    assert.match(
      node.log,
      /"Object not \(fully\) programmed".*service port shop\/s100:http\/TCP: sources-24 198\.51\.100\.100 \. tcp \. 80 \. \S+: ENFILE/,
    );
    await node.eventually('the event', () => eventsAbout('s100').length === 1);
    assert.ok((await node.metric(FAILURES)) > 0);
    // Whatever is changed by others leads to a full sync, and the set with little room is gone.
    await node.nft('delete table ip kube-proxy');
    for (const n of refused) await node.eventually(`service ${n}`, () => works(n));
    await node.eventually('the end of the report', async () => (await node.metric(SET_ASIDE)) === 0);
  });

  test('a table that cannot be repaired is replaced', async () => {
    put(1);
    await node.start();
    await node.eventually('the first service', () => works(1));
    // Another program's chain with one of our names; a rule that refers to it prevents its deletion.
    const chains = ['delete chain', 'add chain'].map((verb) => `${verb} ip kube-proxy nat-output`);
    const rule = 'add chain ip kube-proxy theirs; add rule ip kube-proxy theirs jump nat-output';
    await node.nft([...chains, rule].join('; '));
    const replaced = /"Table could not be put right and was replaced"/;
    await node.eventually('the replacement', async () => replaced.test(node.log));
    await node.eventually('the first service again', () => works(1));
    assert.doesNotMatch(await node.nft('list', 'table', 'ip', 'kube-proxy'), /theirs/);
  });

  test('changes made while every transaction fails are in effect once one succeeds', async () => {
    put(1);
    put(2);
    await node.start({ syncPeriod: '1s' }, ['-v=4']);
    await node.eventually('the first service', () => works(1));
    // While a program owns a table, the kernel lets no other program change it.
    other = spawn('nft', ['-i'], { stdio: ['pipe', 'ignore', 'ignore'] });
    other.stdin?.write('delete table ip kube-proxy; add table ip kube-proxy { flags owner; }\n');
    await node.eventually('a failure', async () => (await node.metric(FAILURES)) > 0);
    put(3);
    node.site.api.delete('services', 'shop', 's2');
    await node.eventually('failures that go on', async () => (await node.metric(FAILURES)) > 5);
    assert.equal(await works(3), false);
    const refusals = node.log.match(/"Transaction refused".* transaction=<\n\tadd table ip kube-proxy\n/g);
    assert.equal(refusals?.length, 1, 'shown once');
    other.kill('SIGKILL');
    for (const n of [1, 3]) await node.eventually(`service ${n}`, () => works(n));
    assert.equal(await works(2), false);
  });

  test('of two services that claim the same address, the loser gets one event', async () => {
    const externalIPs = ['198.51.100.9'];
    put(11, { spec: { externalIPs } });
    await node.start({}, ['-v=9']);
    await node.eventually('the address', () => node.answers('198.51.100.9'));
    put(12, { spec: { externalIPs } });
    await node.eventually('the event', () => eventsAbout('s12').length > 0);
    for (let n = 3; n < 6; n++) {
      put(n);
      await node.eventually(`service ${n}`, () => works(n));
    }
    const lost = 'external IP 198.51.100.9:80/TCP belongs to service port shop/s11:http/TCP';
    assert.deepEqual(eventsAbout('s12'), [`node node-a: service port shop/s12:http/TCP: ${lost}`]);
    assert.equal(node.log.split(lost).length - 1, 1, 'logged once');
    assert.deepEqual(eventsAbout('s11'), []);
    assert.ok((await stillWorks(12)) && (await node.stillAnswers('198.51.100.9')));
    assert.match(
      node.log,
      /"Committing".*<\n(\t.*\n)*\tadd element ip kube-proxy frontends 10\.96\.0\.5 \. tcp \. 80 : 0:/,
    );
    node.site.api.delete('services', 'shop', 's11');
    await node.eventually('the end of the report', async () => (await node.metric(SET_ASIDE)) === 0);
    assert.ok(await node.stillAnswers('198.51.100.9'));
  });
});
