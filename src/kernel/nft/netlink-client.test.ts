import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import {
  FakeNetlink,
  type FakeReply,
  fakeAck,
  fakeDone,
  fakeMessage,
  overrunError,
} from '../../../test/kernel/fake-netlink.ts';
import { NLM_F_DUMP_INTR } from '../netlink/constants.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { NftBatch } from './batch.ts';
import { writeElement, writeElementListRef } from './codec/element.ts';
import { messageKind, messageType, NFNLGRP_NFTABLES, NFT_MSG, type NftMessageKind } from './constants.ts';
import { isAlreadyExists, isNotFound, NftError } from './errors.ts';
import type { NftEvent } from './events.ts';
import { types } from './fields.ts';
import { NetlinkNftClient } from './netlink-client.ts';
import type { Element } from './objects.ts';

const table = { family: 'ip', name: 'kube-proxy' } as const;
const set = { table, name: 'ips', key: [types.ipv4Addr] };
const elements: Element[] = Array.from({ length: 8000 }, (_, i) => ({
  key: Uint8Array.of(10, 0, i >> 8, i),
}));
const IP_FAMILY = 2;

type Answer = (request: readonly NetlinkMessage[], to: { sequence: number; port: number }) => FakeReply[];

/** A client, and its sockets in the order of opening; `answer` is the kernel. */
function connect(answer: Answer, generation: () => number = () => 5) {
  const kernels: FakeNetlink[] = [];
  const open = () => {
    const kernel = new FakeNetlink((request, { portId }) => {
      const to = { sequence: request[0]?.sequence ?? 0, port: portId };
      if (messageKind(request[0]?.type ?? 0) !== NFT_MSG.GETGEN) return answer(request, to);
      return [reply(NFT_MSG.NEWGEN, to, (w) => w.u32Be(1, generation())), fakeAck(to)];
    }, 1000 + kernels.length);
    kernels.push(kernel);
    return kernel;
  };
  const clock = new FakeClock();
  const client = new NetlinkNftClient(open, { clock });
  return { client, kernels, clock };
}

function reply(
  kind: NftMessageKind,
  to: { sequence: number; port: number },
  write: (writer: MessageWriter) => void,
  flags = 0,
): Uint8Array {
  return fakeMessage({ type: messageType(kind), flags, ...to }, (writer) => {
    writer.nfgenmsg(IP_FAMILY);
    write(writer);
  });
}

/** The acknowledgement that the last operation of a batch requests. */
const receipt: Answer = (request, { port }) => {
  const last = request.findLast((message) => message.flags & 0x4);
  return last ? [fakeAck({ sequence: last.sequence, port })] : [];
};

suite('commit', () => {
  test('a commit returns size and generation; an empty batch is not sent', async () => {
    const { client, kernels } = connect(receipt);
    const batch = new NftBatch().add('table', table);
    assert.deepEqual(await client.commit(batch), { generation: 5, bytes: batch.length + 20 });
    assert.deepEqual(await client.commit(new NftBatch()), { generation: undefined, bytes: 0 });
    assert.equal(kernels[0]?.sent.length, 3);
  });

  test('a commit reports every refused operation, with the element at fault', async () => {
    const batch = new NftBatch()
      .add('table', table)
      .addElements(set, elements)
      .delete('chain', { table, name: 'x' });
    const { client } = connect((_, { port }) => [
      fakeAck({ sequence: 1, port }, 17, { text: 'exists already' }),
      fakeAck({ sequence: 2, port }, 28, { offset: 20 + 16 + 8 + 4 + 16 * 3 }),
      fakeAck({ sequence: 4, port }, 2),
      fakeAck({ sequence: 4, port }, 0),
    ]);
    await assert.rejects(client.commit(batch), (error) => {
      assert.ok(error instanceof NftError && isAlreadyExists(error) && !isNotFound(error));
      assert.deepEqual(
        error.failures.map((f) => [f.errno, f.text, f.operation?.kind]),
        [
          ['EEXIST', 'exists already', 'table'],
          ['ENOSPC', '', 'element'],
          ['ENOENT', '', 'chain'],
        ],
      );
      assert.deepEqual(error.failures[1]?.element, elements[3]);
      assert.match(error.message, /^commit: add table ip kube-proxy: EEXIST \(exists already\); add element/);
      return true;
    });
  });

  for (const [what, answer, expected] of [
    ['the batch as a whole', (_, { port }) => [fakeAck({ sequence: 0, port }, 85)], /commit: ERESTART/],
    ['lost answers', () => [overrunError()], /commit: ENOBUFS \(the answer was lost\)/],
    ['silence', () => [], /commit: EIO \(no confirmation came\)/],
    ['a receipt of another operation', (_, { port }) => [fakeAck({ sequence: 9, port })], /commit: EIO/],
  ] as [string, Answer, RegExp][]) {
    test(`a commit fails on ${what}`, async () => {
      const { client } = connect(answer);
      await assert.rejects(client.commit(new NftBatch().add('table', table)), expected);
    });
  }

  test('a check sends no end mark and reads no generation', async () => {
    const { client, kernels } = connect(receipt);
    await client.check(new NftBatch().add('table', table));
    assert.equal(kernels[0]?.sent.length, 1);
    assert.equal(kernels[0]?.sent[0]?.length, new NftBatch().add('table', table).length);
  });
});

suite('lists', () => {
  test('elements are streamed, and a disturbed dump reports its restart', async () => {
    let attempt = 0;
    const { client, clock } = connect((_, to) => {
      const flags = attempt++ === 0 ? NLM_F_DUMP_INTR : 0;
      const part = (from: number) =>
        reply(
          NFT_MSG.NEWSETELEM,
          to,
          (w) => {
            writeElementListRef(w, set);
            const list = w.beginNested(3);
            for (const element of elements.slice(from, from + 2)) writeElement(w, element);
            w.endNested(list);
          },
          flags,
        );
      return [part(0), part(2), fakeDone(to)];
    });
    const log: unknown[] = [];
    const listed = client.listElements(set, (some, restarted) => log.push(restarted ? 'restart' : some));
    await clock.advance(10);
    await listed;
    const parts = [elements.slice(0, 2), elements.slice(2, 4)];
    assert.deepEqual(log, [...parts, 'restart', ...parts]);
  });

  test('a dump with duplicate elements is read again, because others are missing', async () => {
    let attempt = 0;
    const { client, clock } = connect((_, to) => {
      const last = attempt++ === 0 ? 1 : 2;
      const part = (index: number) =>
        reply(NFT_MSG.NEWSETELEM, to, (w) => {
          const list = w.beginNested(3);
          writeElement(w, elements[index] ?? { key: new Uint8Array(4) });
          w.endNested(list);
        });
      return [part(0), part(1), part(last), fakeDone(to)];
    });
    let found: Element[] = [];
    const listed = client.listElements(set, (some, restarted) => {
      found = restarted ? [] : [...found, ...some];
    });
    await clock.advance(10);
    await listed;
    assert.deepEqual(found, elements.slice(0, 3));
    assert.equal(attempt, 2);
    attempt = 0;
    let count = 0;
    const counting = (some: readonly Element[]): unknown => (count += some.length);
    await client.listElements(set, counting, { isApproximate: true });
    assert.deepEqual([attempt, count], [1, 3], 'unless that does not matter');
  });

  test('the end of an interval is no duplicate of an element with the same key', async () => {
    const { client } = connect((_, to) => [
      reply(NFT_MSG.NEWSETELEM, to, (w) => {
        const list = w.beginNested(3);
        const key = Uint8Array.of(10, 0, 0, 0);
        for (const element of [{ key }, { key, intervalEnd: true }, { key, keyEnd: key }])
          writeElement(w, element);
        w.endNested(list);
      }),
      fakeDone(to),
    ]);
    let count = 0;
    await client.listElements(set, (some) => {
      count += some.length;
    });
    assert.equal(count, 3);
  });

  test('lists of a missing table are empty, but a missing set is an error', async () => {
    const { client } = connect((_, to) => [fakeAck(to, 2)]);
    assert.deepEqual(await client.listRules(table), []);
    assert.deepEqual(await client.listSets(table), []);
    assert.deepEqual(await client.listChains(table), []);
    assert.deepEqual(await client.listCounters(table), []);
    assert.equal(await client.getTable(table), undefined);
    await assert.rejects(
      client.listElements(set, () => {}),
      (error) => isNotFound(error) && /^list elements: ENOENT/.test((error as Error).message),
    );
  });

  test('lists reject on other refusals', async () => {
    const { client } = connect((_, to) => [fakeAck(to, 1, { text: 'not you' })]);
    await assert.rejects(client.listRules(table), /list rules: EPERM \(not you\)/);
  });
});

suite('events', () => {
  function listen(client: NetlinkNftClient) {
    const log: (NftEvent | string)[] = [];
    const subscription = client.subscribe({
      event: (event) => log.push(event),
      overrun: () => log.push('overrun'),
      failed: (error) => log.push(`failed: ${error.message}`),
    });
    return { log, subscription };
  }

  test('events are decoded with their origin; unreadable events count as lost', () => {
    const { client, kernels } = connect(receipt);
    const { log } = listen(client);
    const [, , events] = kernels;
    assert.deepEqual([...(events?.groups ?? [])], [NFNLGRP_NFTABLES]);
    assert.ok(events?.filter);
    const to = { sequence: 0, port: 31 };
    events?.emit(
      reply(NFT_MSG.DELTABLE, to, (w) => w.string(1, 'kube-proxy')),
      reply(NFT_MSG.NEWGEN, to, (w) => {
        w.u32Be(1, 6);
        w.u32Be(2, 99);
        w.string(3, 'nft');
      }),
      reply(NFT_MSG.NEWCHAIN, to, () => {}),
      fakeMessage({ type: 1 << 8, ...to }),
      overrunError(),
    );
    assert.deepEqual(log, [
      { portId: 31, type: 'delete', kind: 'table', object: table },
      { portId: 31, type: 'generation', id: 6, pid: 99, processName: 'nft' },
      'overrun',
      'overrun',
    ]);
  });

  test('a large commit of our own causes no events for us', async () => {
    let generation = 5;
    const membership: boolean[] = [];
    const { client, kernels } = connect(
      (request, to) => {
        generation++;
        membership.push(kernels[2]?.groups.has(NFNLGRP_NFTABLES) ?? false);
        return receipt(request, to);
      },
      () => generation,
    );
    const { log } = listen(client);
    await client.commit(new NftBatch().addElements(set, elements));
    await client.commit(new NftBatch().add('table', table));
    assert.deepEqual(membership, [false, true]);
    assert.ok(kernels[2]?.groups.has(NFNLGRP_NFTABLES));
    assert.deepEqual(log, []);
  });

  for (const [others, expected] of [
    [0, []],
    [1, ['overrun']],
  ] as const) {
    test(`who subscribes during a large commit gets no events of it, and hears of ${others} other commits`, async () => {
      let generation = 5;
      const events = Promise.withResolvers<ReturnType<typeof listen>>();
      const { client, kernels } = connect(
        (request, to) => {
          generation += 1 + others;
          events.resolve(listen(client));
          assert.deepEqual([...(kernels[2]?.groups ?? [])], []);
          return receipt(request, to);
        },
        () => generation,
      );
      await client.commit(new NftBatch().addElements(set, elements));
      assert.ok(kernels[2]?.groups.has(NFNLGRP_NFTABLES));
      assert.deepEqual((await events.promise).log, expected);
    });
  }

  test('another commit during our large commit is reported as lost events', async () => {
    let generation = 5;
    const { client } = connect(
      (request, to) => {
        generation += 2;
        return receipt(request, to);
      },
      () => generation,
    );
    const { log } = listen(client);
    await client.commit(new NftBatch().addElements(set, elements));
    assert.deepEqual(log, ['overrun']);
  });

  test('events are delivered again after a large commit failed', async () => {
    const { client, kernels } = connect((_, { port }) => [fakeAck({ sequence: 1, port }, 2)]);
    const { log } = listen(client);
    await assert.rejects(client.commit(new NftBatch().addElements(set, elements)), isNotFoundError);
    assert.ok(kernels[2]?.groups.has(NFNLGRP_NFTABLES));
    assert.deepEqual(log, []);
  });

  test('events end when the subscription or the client is closed', () => {
    const { client, kernels } = connect(receipt);
    listen(client).subscription.close();
    listen(client);
    client.close();
    assert.equal(kernels.length, 4);
    assert.ok(kernels.every((kernel) => kernel.closed && kernel.watchers === 0));
  });
});

function isNotFoundError(error: unknown): boolean {
  return isNotFound(error);
}
