import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, beforeEach, suite, test } from 'node:test';
import { NETLINK_NETFILTER } from '../../src/kernel/netlink/constants.ts';
import { openTransport } from '../../src/kernel/netlink/transport.ts';
import { NftBatch } from '../../src/kernel/nft/batch.ts';
import type { NftClient } from '../../src/kernel/nft/client.ts';
import { isAlreadyExists, isNotFound, NftError } from '../../src/kernel/nft/errors.ts';
import type { NftEvent } from '../../src/kernel/nft/events.ts';
import { concatValues, typeOf, types } from '../../src/kernel/nft/fields.ts';
import { NetlinkNftClient, openNftClient } from '../../src/kernel/nft/netlink-client.ts';
import type { Element, NftSet } from '../../src/kernel/nft/objects.ts';
import { isAtLeast, kernelVersion } from '../../src/kernel/probe.ts';
import { systemFiles } from '../../src/kernel/system-files.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import type { Libc } from '../../src/native/libc.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';
import { setInfo } from './nft-declared-sets.ts';

const table = { family: 'ip', name: 'kube-proxy' } as const;
const chain = { table, name: 'target' };
const frontends: NftSet = {
  table,
  name: 'frontends',
  key: [types.ipv4Addr, types.inetProto, types.inetService],
  data: 'verdict',
};
const clients: NftSet = {
  table,
  name: 'clients',
  key: [typeOf.ipSaddr, typeOf.thDport],
  data: [typeOf.ipDaddr],
  flags: ['timeout', 'dynamic'],
  size: 1000,
  timeoutMs: 60_000,
};
const version = kernelVersion(systemFiles);

inNamespace(import.meta.url, () => {
  let libc: Libc;
  let client: NftClient;

  before(async () => {
    libc = await loadLibc();
    client = openNftClient(libc, { clock: systemClock });
  });
  after(() => client.close());
  beforeEach(async () => {
    await client.commit(new NftBatch().destroy('table', table));
    await client.commit(
      new NftBatch().add('table', table).add('chain', chain).add('set', frontends).add('set', clients),
    );
  });

  const elementsOf = async (set: NftSet) => {
    const found: Element[] = [];
    await client.listElements(set, (some, restarted) => {
      if (restarted) found.length = 0;
      found.push(...some);
    });
    return found;
  };

  suite('reading', () => {
    test('every list of a missing table is empty', async () => {
      const missing = { family: 'ip6', name: 'kube-proxy' } as const;
      assert.equal(await client.getTable(missing), undefined);
      assert.deepEqual(await client.listChains(missing), []);
      assert.deepEqual(await client.listRules(missing), []);
      assert.deepEqual(await client.listSets(missing), []);
      assert.deepEqual(await client.listCounters(missing), []);
      await assert.rejects(
        client.listElements({ table: missing, name: 'x' }, () => {}),
        isNotFound,
      );
    });

    test('sets are reported as they were declared', async () => {
      const reported = await client.listSets(table);
      assert.deepEqual(reported, [setInfo(frontends), setInfo(clients)]);
    });

    test('elements keep their data, comment and time', async () => {
      const element = {
        key: concatValues(address(1), Uint8Array.of(0, 53)),
        data: address(9),
        comment: 'größe',
      };
      await client.commit(
        new NftBatch().addElements(clients, [{ ...element, timeoutMs: 30_000, expiresMs: 20_000 }]),
      );
      const [found] = await elementsOf(clients);
      assert.ok(found?.expiresMs && found.expiresMs <= 20_000);
      assert.deepEqual(found, { ...element, timeoutMs: 30_000, expiresMs: found.expiresMs });
    });

    test('an element is found by its key, and a range by an address in it', async () => {
      const ranges: NftSet = { table, name: 'ranges', key: [types.ipv4Addr], flags: ['interval'] };
      await client.commit(
        new NftBatch()
          .addElements(frontends, [element(1), element(2)])
          .add('set', ranges)
          .addElements(ranges, [
            { key: Uint8Array.of(10, 96, 0, 0) },
            { key: Uint8Array.of(10, 97, 0, 0), intervalEnd: true },
          ]),
      );
      assert.deepEqual(await client.getElement(frontends, element(2).key), element(2));
      assert.equal(await client.getElement(frontends, element(3).key), undefined);
      assert.equal(await client.getElement({ table, name: 'missing' }, element(1).key), undefined);
      const start = { key: Uint8Array.of(10, 96, 0, 0) };
      assert.deepEqual(await client.getElement(ranges, Uint8Array.of(10, 96, 7, 7)), start);
      assert.equal(await client.getElement(ranges, Uint8Array.of(10, 97, 0, 0)), undefined);
      assert.equal(await client.getElement(ranges, Uint8Array.of(10, 95, 0, 0)), undefined);
    });

    test('a list of many elements is complete', async () => {
      const many = Array.from({ length: 20_000 }, (_, i) => element(i));
      await client.commit(new NftBatch().addElements(frontends, many));
      // Compared by digest: a difference between long lists takes the test runner minutes and gigabytes to print.
      const found = await elementsOf(frontends);
      assert.equal(found.length, many.length);
      assert.equal(digest(found), digest(many));
    });

    test('counters are read with their values and comment', async () => {
      const counter = { table, name: 'c', packets: 5n, bytes: 500n, comment: 'counts' };
      await client.commit(new NftBatch().add('counter', counter));
      const [read] = await client.listCounters(table);
      assert.deepEqual([read?.packets, read?.bytes, read?.comment], [5n, 500n, 'counts']);
    });
  });

  suite('writing', () => {
    test('a commit is all or nothing, and every failure names its object', async () => {
      await client.commit(new NftBatch().addElements(frontends, [1, 2, 3].map(element)));
      const before = sh('nft list ruleset');
      const batch = new NftBatch()
        .add('chain', { table, name: 'new' })
        .deleteElements(frontends, [element(1), element(77), element(3)])
        .delete('chain', { table, name: 'missing' })
        .addElements(frontends, [element(5), { ...element(2), verdict: { kind: 'drop' } }])
        .add('rule', { chain, exprs: [{ kind: 'lookup', set: 'missing', sreg: 0 }] });
      await assert.rejects(client.commit(batch), (error) => {
        assert.ok(error instanceof NftError && isNotFound(error));
        assert.deepEqual(
          error.failures.map(({ errno, operation }) => [errno, operation?.verb, operation?.kind]),
          [
            ['ENOENT', 'delete', 'element'],
            ['ENOENT', 'delete', 'chain'],
            ['EEXIST', 'add', 'element'],
            ['ENOENT', 'add', 'rule'],
          ],
        );
        if (isAtLeast(version, { major: 5, minor: 19 })) {
          assert.deepEqual(error.failures[0]?.element?.key, element(77).key);
          assert.deepEqual(error.failures[2]?.element?.key, element(2).key);
        }
        return true;
      });
      assert.equal(sh('nft list ruleset'), before);
    });

    test('add accepts what exists, unless the data differ', async () => {
      await client.commit(new NftBatch().add('table', table).add('chain', chain).add('set', frontends));
      await client.commit(
        new NftBatch().addElements(frontends, [element(1)]).addElements(frontends, [element(1)]),
      );
      const other: Element = { ...element(1), verdict: { kind: 'drop' } };
      await assert.rejects(client.commit(new NftBatch().addElements(frontends, [other])), isAlreadyExists);
    });

    test('destroy tolerates a missing table', async () => {
      const missing = { family: 'ip6', name: 'none' } as const;
      await client.commit(new NftBatch().destroy('table', missing));
      assert.equal(await client.getTable(missing), undefined);
    });

    test('flush empties chains and sets, delete removes chains', async () => {
      const rule = { chain, exprs: [{ kind: 'counter' } as const] };
      await client.commit(
        new NftBatch()
          .addElements(frontends, [element(1)])
          .add('rule', rule)
          .add('rule', rule),
      );
      assert.equal((await client.listRules(table, 'target')).length, 2);
      await client.commit(new NftBatch().flush('chain', chain).flush('set', frontends));
      assert.equal((await client.listRules(table)).length, 0);
      assert.deepEqual(await elementsOf(frontends), []);
      await client.commit(new NftBatch().delete('chain', chain));
      assert.ok((await client.listChains(table)).every(({ name }) => name !== chain.name));
    });

    test('rules are appended in order', async () => {
      const rule = (comment: string) => ({ chain, exprs: [], comment });
      await client.commit(new NftBatch().add('rule', rule('a')).add('rule', rule('b')));
      await client.commit(new NftBatch().add('rule', rule('c')));
      assert.deepEqual(
        (await client.listRules(table, 'target')).map((r) => r.comment),
        ['a', 'b', 'c'],
      );
    });

    test('a check changes nothing, and fails where a commit would', async () => {
      const before = await client.generation();
      await client.check(new NftBatch().delete('table', table));
      await assert.rejects(
        client.check(new NftBatch().delete('chain', { table, name: 'missing' })),
        isNotFound,
      );
      assert.equal((await client.generation()).id, before.id);
      assert.ok(await client.getTable(table));
    });

    test('each commit is a generation, and a stale one can be refused', async () => {
      const { id } = await client.generation();
      const batch = () => new NftBatch().add('chain', { table, name: 'x' }).expectGeneration(id);
      assert.equal((await client.commit(batch())).generation, id + 1);
      await assert.rejects(client.commit(batch()), (e) => e instanceof NftError && e.errno === 'ERESTART');
    });

    test('own commits to other tables make no generation stale, those of others do', async () => {
      const other = { family: 'ip6', name: 'kube-proxy' } as const;
      const { id } = await client.generation();
      const batch = () => new NftBatch().add('chain', { table, name: 'x' }).expectGeneration(id);
      for (let i = 0; i < 3; i++) await client.commit(new NftBatch().add('table', other));
      sh('nft add table ip foreign');
      await assert.rejects(client.commit(batch()), (e) => e instanceof NftError && e.errno === 'ERESTART');
      sh('nft delete table ip foreign; nft delete table ip6 kube-proxy');
      const { id: current } = await client.generation();
      await client.commit(new NftBatch().add('table', other));
      const { generation } = await client.commit(batch().expectGeneration(current));
      assert.equal(generation, current + 2);
      await client.commit(new NftBatch().delete('table', other));
    });

    test('intervals of one field are written as nft shows them', async () => {
      const cidrs: NftSet = { table, name: 'cidrs', key: [types.ipv4Addr], flags: ['interval'] };
      const range = (from: number[], end: number[]): Element[] => [
        { key: Uint8Array.from(from) },
        { key: Uint8Array.from(end), intervalEnd: true },
      ];
      const elements = [...range([10, 96, 0, 0], [10, 97, 0, 0]), ...range([10, 98, 0, 0], [10, 99, 0, 0])];
      await client.commit(new NftBatch().add('set', cidrs).addElements(cidrs, elements));
      assert.match(
        sh('nft list set ip kube-proxy cidrs'),
        /elements = \{ 10\.96\.0\.0\/16, 10\.98\.0\.0\/16 \}/,
      );
    });

    test('missing privileges are reported', async () => {
      const script = `
        const { loadLibc } = await import('./src/native/koffi-libc.ts');
        const { openNftClient } = await import('./src/kernel/nft/netlink-client.ts');
        const { NftBatch } = await import('./src/kernel/nft/batch.ts');
        const { systemClock } = await import('./src/lib/clock.ts');
        const client = openNftClient(await loadLibc(), { clock: systemClock });
        await client.commit(new NftBatch().add('table', { family: 'ip', name: 't' })).catch((e) => console.log(e.message));
        client.close();`;
      const run = `setpriv --bounding-set=-all --inh-caps=-all "$NODE" --input-type=module -e "$SCRIPT"`;
      process.env.NODE = process.execPath;
      process.env.SCRIPT = script;
      assert.match(sh(run), /^get generation: EPERM/);
    });
  });

  suite('following', () => {
    function listen(to: NftClient) {
      const log: (NftEvent | 'overrun')[] = [];
      const subscription = to.subscribe({
        event: (event) => log.push(event),
        overrun: () => log.push('overrun'),
        failed: assert.fail,
      });
      return { log, subscription };
    }

    const isGeneration = (e: NftEvent | 'overrun' | undefined) => e !== 'overrun' && e?.type === 'generation';

    test('changes by other programs are reported with their author, our own are not', async () => {
      const { log, subscription } = listen(client);
      await client.commit(new NftBatch().add('chain', { table, name: 'ours' }));
      sh(`nft 'add element ip kube-proxy frontends { 10.0.0.1 . tcp . 80 : goto target }'`);
      await eventually('a foreign commit is reported', () => isGeneration(log.at(-1)));
      assert.equal(log.length, 2);
      const [change, generation] = log;
      assert.ok(change !== 'overrun' && change?.type === 'new' && change.kind === 'element');
      assert.deepEqual(change.set, { table, name: 'frontends' });
      assert.deepEqual(change.elements[0]?.verdict, { kind: 'goto', chain: 'target' });
      assert.notEqual(change.portId, client.portId);
      assert.ok(generation !== 'overrun' && generation?.type === 'generation');
      assert.equal(generation.processName, 'nft');
      subscription.close();
    });

    test('a flush of the ruleset is reported', async () => {
      const { log, subscription } = listen(client);
      sh('nft flush ruleset');
      await eventually('the flush is reported', () => isGeneration(log.at(-1)));
      const kinds = log.map((e) => (e !== 'overrun' && e.type === 'delete' ? e.kind : ''));
      assert.ok(kinds.includes('table') && kinds.includes('chain') && kinds.includes('set'));
      subscription.close();
    });

    test('a large commit of our own is not reported, a foreign change after it is', async () => {
      const { log, subscription } = listen(client);
      const many = Array.from({ length: 20_000 }, (_, i) => element(i));
      await client.commit(new NftBatch().addElements(frontends, many));
      sh('nft add chain ip kube-proxy foreign');
      await eventually('the foreign commit is reported', () => isGeneration(log.at(-1)));
      assert.equal(log.length, 2);
      subscription.close();
    });

    test('an overrun is reported, and so are the changes after it', async () => {
      const small = () => openTransport(libc, NETLINK_NETFILTER, { receiveBuffer: 16_384 });
      const narrow = new NetlinkNftClient(small, { clock: systemClock });
      const { log } = listen(narrow);
      const many = Array.from({ length: 5000 }, (_, i) => `10.0.${i >> 8}.${i & 255} . tcp . 80 : drop`);
      sh('nft -f -', `add element ip kube-proxy frontends { ${many.join(', ')} }`);
      await eventually('the overrun is reported', () => log.includes('overrun'));
      sh('nft add chain ip kube-proxy later');
      await eventually('later changes are reported', () => log.some(isLater));
      narrow.close();
    });
  });
});

function isLater(event: NftEvent | 'overrun'): boolean {
  return (
    event !== 'overrun' && event.type === 'new' && event.kind === 'chain' && event.object.name === 'later'
  );
}

function address(n: number): Uint8Array {
  return Uint8Array.of(10, n >> 16, n >> 8, n);
}

function element(n: number): Element {
  return {
    key: concatValues(address(n), Uint8Array.of(6), Uint8Array.of(0, 80)),
    verdict: { kind: 'goto', chain: 'target' },
  };
}

function digest(elements: readonly Element[]): string {
  const keys = elements.map(({ key }) => Buffer.from(key).toString('hex')).sort();
  return createHash('sha256').update(keys.join()).digest('hex');
}
