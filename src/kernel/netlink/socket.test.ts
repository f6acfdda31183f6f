import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FakeClock } from '../../../test/fake-clock.ts';
import {
  FakeNetlink,
  type FakeReply,
  fakeAck,
  fakeDone,
  fakeMessage,
  overrunError,
} from '../../../test/kernel/fake-netlink.ts';
import type { Clock } from '../../lib/clock.ts';
import { SystemError } from '../../native/system-error.ts';
import { NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_MULTI, NLM_F_REQUEST } from './constants.ts';
import { NetlinkError } from './error.ts';
import { type NetlinkMessage, readMessages } from './reader.ts';
import { type NetlinkRequest, NetlinkSocket } from './socket.ts';

const OBJECT = 100;
const request: NetlinkRequest = { type: 99, flags: 0x800, name: 'get object', write: (w) => w.u32(1, 42) };

/** A socket whose kernel answers every request with a list of replies. */
function connect(answer: (to: { sequence: number; port: number }, nth: number) => readonly FakeReply[]) {
  const clock = new FakeClock();
  let nth = 0;
  const kernel = new FakeNetlink((messages, { portId }) =>
    messages.flatMap((message) => answer({ sequence: message.sequence, port: portId }, nth++)),
  );
  return { kernel, clock, socket: new NetlinkSocket(kernel, { clock, random: () => 0.5 }) };
}

const numbered = (to: { sequence: number; port: number }, value: number, flags = NLM_F_MULTI) =>
  fakeMessage({ type: OBJECT, flags, ...to }, (w) => w.u32(1, value));

function valueIn(message: NetlinkMessage): number {
  const reader = message.attributes(0);
  reader.next();
  return reader.u32();
}

suite('requests', () => {
  test('requests carry rising sequence numbers, the flags and the payload of the caller', async () => {
    const { kernel, socket } = connect((to) => [fakeAck(to)]);
    await socket.request(request);
    await socket.request(request);
    const sent = kernel.sent.flatMap((bytes) => readMessages(bytes));
    assert.deepEqual(
      sent.map((m) => [m.type, m.flags, m.sequence, valueIn(m)]),
      [
        [99, NLM_F_REQUEST | NLM_F_ACK | 0x800, 1, 42],
        [99, NLM_F_REQUEST | NLM_F_ACK | 0x800, 2, 42],
      ],
    );
  });

  test('requests pass on the objects that precede the acknowledgement', async () => {
    const { socket } = connect((to) => [numbered(to, 5, 0), fakeAck(to)]);
    const values: number[] = [];
    await socket.request(request, (message) => values.push(valueIn(message)));
    assert.deepEqual(values, [5]);
  });

  test("requests reject with the kernel's errno, text and offset", async () => {
    const { socket } = connect((to) => [fakeAck(to, 22, { text: 'Invalid thing', offset: 28 })]);
    await assert.rejects(socket.request(request), (error) => {
      assert.ok(error instanceof NetlinkError);
      assert.equal(error.message, 'get object: EINVAL (Invalid thing)');
      assert.deepEqual(
        [error.code, error.errno, error.text, error.offset],
        ['EINVAL', 22, 'Invalid thing', 28],
      );
      return true;
    });
  });

  test('requests sent in one datagram get one result each', async () => {
    const { kernel, socket } = connect((to, nth) => [fakeAck(to, nth === 1 ? 2 : 0)]);
    const results = await socket.requestAll([request, request, request]);
    assert.deepEqual(
      results.map((error) => error?.code),
      [undefined, 'ENOENT', undefined],
    );
    assert.equal(kernel.sent.length, 1);
  });

  test('requests ignore answers to other requests, to other ports and from other senders', async () => {
    const { socket } = connect((to) => [
      fakeAck({ ...to, sequence: to.sequence + 7 }, 1),
      fakeAck({ ...to, port: to.port + 1 }, 2),
      { bytes: fakeAck(to, 3), sender: 1234 },
      fakeAck(to, 0),
    ]);
    await socket.request(request);
  });

  test('requests wait for a late answer and time out after 10 s', async () => {
    const { kernel, clock, socket } = connect(() => []);
    const late = socket.request(request);
    await clock.advance(9_000);
    kernel.emit(fakeAck({ sequence: 1, port: kernel.portId }));
    await late;
    const never = assert.rejects(socket.request(request), /receive: ETIMEDOUT \(no answer came\)/);
    await clock.advance(10_000);
    await never;
    assert.equal(kernel.watchers, 0);
    assert.equal(clock.pending, 0);
  });

  test('requests fail when the kernel dropped their answer', async () => {
    const { socket } = connect(() => [overrunError()]);
    await assert.rejects(socket.request(request), (e) => e instanceof SystemError && e.code === 'ENOBUFS');
  });

  test('requests are served one after the other, also after a failure', async () => {
    const { kernel, socket } = connect((to, nth) => [fakeAck(to, nth === 0 ? 1 : 0)]);
    const first = socket.request(request);
    const second = socket.request(request);
    await assert.rejects(first, /EPERM/);
    await second;
    assert.equal(kernel.sent.length, 2);
  });

  test('requests under way fail when the socket is closed', async () => {
    const { kernel, clock, socket } = connect(() => []);
    const waiting = assert.rejects(socket.request(request), /EBADF/);
    await clock.advance(1);
    socket.close();
    await waiting;
    assert.ok(kernel.closed);
    assert.equal(kernel.watchers, 0);
  });
});

suite('dumps', () => {
  const collect = () => {
    const values: number[] = [];
    return {
      values,
      handler: {
        message: (m: NetlinkMessage) => void values.push(valueIn(m)),
        restart: () => values.splice(0),
      },
    };
  };

  test('dumps come in several datagrams of several messages', async () => {
    const { kernel, socket } = connect((to) => [
      Buffer.concat([numbered(to, 1), numbered(to, 2)]),
      numbered(to, 3),
      fakeDone(to),
    ]);
    const { values, handler } = collect();
    await socket.dump(request, handler);
    assert.deepEqual(values, [1, 2, 3]);
    const [sent] = readMessages(kernel.sent[0] ?? new Uint8Array());
    assert.equal(sent?.flags, NLM_F_REQUEST | NLM_F_DUMP | 0x800);
  });

  for (const [how, disturb] of [
    ['flagged on a part', (to) => [numbered(to, 1, NLM_F_MULTI | NLM_F_DUMP_INTR), fakeDone(to)]],
    [
      'flagged at its end',
      (to) => [numbered(to, 1), fakeMessage({ type: 3, flags: NLM_F_DUMP_INTR, ...to })],
    ],
    ['ended by EINTR', (to) => [numbered(to, 1), fakeDone(to, 4)]],
    ['with dropped messages', (to) => [numbered(to, 1), overrunError(), fakeDone(to)]],
  ] as [string, (to: { sequence: number; port: number }) => FakeReply[]][]) {
    test(`a disturbed dump (${how}) starts again`, async () => {
      const { clock, socket } = connect((to, nth) =>
        nth === 0 ? disturb(to) : [numbered(to, 2), fakeDone(to)],
      );
      const { values, handler } = collect();
      const dumped = socket.dump(request, handler);
      await clock.advance(10);
      await dumped;
      assert.deepEqual(values, [2]);
    });
  }

  const disturbed = (to: { sequence: number; port: number }) => [
    numbered(to, 1, NLM_F_DUMP_INTR),
    fakeDone(to),
  ];

  test('dumps fail after ten disturbed attempts, and the error says how long these took', async () => {
    const { kernel, clock, socket } = connect(disturbed);
    const { values, handler } = collect();
    const failed = assert.rejects(
      socket.dump(request, handler),
      /get object: EINTR \(changes disturbed the dump 10 times within 2\.5 s\)/,
    );
    await clock.advance(5_000);
    await failed;
    assert.equal(kernel.sent.length, 10);
    assert.deepEqual(values, [1]);
  });

  test('pauses between attempts at a dump grow', async () => {
    const times: number[] = [];
    const { clock, socket } = connect((to) => {
      times.push(clock.monotonic());
      return disturbed(to);
    });
    const failed = assert.rejects(socket.dump(request, collect().handler));
    await clock.advance(5_000);
    await failed;
    assert.deepEqual(
      times.slice(1).map((time, i) => time - (times[i] ?? 0)),
      [5, 10, 20, 40, 80, 160, 320, 500, 500].map((ms) => ms * 1.5),
    );
  });

  test('other requests are served between attempts at a dump', async () => {
    const { clock, socket } = connect((to, nth) => (nth === 1 ? [fakeAck(to)] : disturbed(to)));
    const failed = assert.rejects(socket.dump(request, collect().handler), /EINTR/);
    await socket.request(request);
    await clock.advance(5_000);
    await failed;
  });

  test('a dump that waits for its next attempt fails when the socket is closed', async () => {
    const { clock, socket } = connect(disturbed);
    const failed = assert.rejects(socket.dump(request, collect().handler), /EBADF/);
    await clock.advance(1);
    socket.close();
    await failed;
    assert.equal(clock.pending, 0);
  });

  test('dumps reject when the kernel refuses them, at once or at their end', async () => {
    for (const answer of [fakeAck, fakeDone]) {
      const { socket } = connect((to) => [answer(to, 2)]);
      await assert.rejects(socket.dump(request, collect().handler), /get object: ENOENT/);
    }
  });

  test('dumps are read to their end when the handler throws, so that the next request is not disturbed', async () => {
    const { socket } = connect((to, nth) =>
      nth === 0 ? [numbered(to, 1), numbered(to, 2), fakeDone(to)] : [fakeAck(to)],
    );
    let seen = 0;
    const handler = {
      message() {
        seen++;
        throw new Error(`handler fault ${seen}`);
      },
      restart() {},
    };
    await assert.rejects(socket.dump(request, handler), /handler fault 1/);
    assert.equal(seen, 2);
    await socket.request(request);
  });

  test('dumps with a malformed datagram reject after their end', async () => {
    const { socket } = connect((to) => [Uint8Array.of(1, 2, 3), fakeDone(to)]);
    await assert.rejects(socket.dump(request, collect().handler), /too few for a message header/);
  });
});

suite('exchanges', () => {
  test('exchanges pass on all answers, but none left over from before', async () => {
    const { kernel, socket } = connect((to) => [fakeAck(to, 1), overrunError(), fakeAck(to, 2)]);
    kernel.emit(fakeAck({ sequence: 1, port: kernel.portId }, 5));
    const bytes = fakeMessage({ type: 16, sequence: 1, port: 0 });
    let messages = 0;
    assert.deepEqual(await socket.exchange(bytes, () => messages++), { lost: true });
    assert.equal(messages, 2);
  });

  test('an exchange with many answers lets other work of the event loop run', async () => {
    const { kernel, clock } = connect((to) => Array.from({ length: 3 }, () => fakeAck(to)));
    let messages = 0;
    // Each message takes a millisecond.
    const slow: Clock = {
      now: () => clock.now(),
      monotonic: () => messages,
      setTimeout: (run, ms) => clock.setTimeout(run, ms),
    };
    const socket = new NetlinkSocket(kernel, { clock: slow });
    let isDone = false;
    const exchange = socket.exchange(fakeMessage({ type: 16, sequence: 1, port: 0 }), () => messages++);
    void exchange.then(() => {
      isDone = true;
    });
    const seen: number[] = [];
    while (!isDone) {
      await nextTurn();
      seen.push(messages);
    }
    assert.deepEqual(seen.slice(0, 3), [1, 2, 3]);
  });

  test('onDatagram sees the datagrams of both directions', async () => {
    const seen: string[] = [];
    const kernel = new FakeNetlink(([message], { portId }) => [
      fakeAck({ sequence: message?.sequence ?? 0, port: portId }),
    ]);
    const socket = new NetlinkSocket(kernel, {
      clock: new FakeClock(),
      onDatagram: (direction, bytes) => seen.push(`${direction} ${bytes.length}`),
    });
    await socket.request(request);
    assert.deepEqual(seen, ['send 24', 'receive 36']);
  });
});
