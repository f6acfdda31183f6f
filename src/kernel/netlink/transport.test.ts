import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DatagramBatch } from '../../native/datagram-batch.ts';
import {
  type Libc,
  SO_RCVBUF,
  SO_RCVBUFFORCE,
  SO_SNDBUF,
  SO_SNDBUFFORCE,
  SOL_NETLINK,
  SOL_SOCKET,
} from '../../native/libc.ts';
import { SystemError } from '../../native/system-error.ts';
import { NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_NETFILTER } from './constants.ts';
import { openTransport } from './transport.ts';

const EPERM = 1;
const fd = 33;

/** A C library that records its calls; a test replaces the ones it is about. */
function fakeLibc(overrides: Partial<Libc> = {}) {
  const calls: string[] = [];
  const libc: Libc = {
    socket: (domain, type, protocol) => {
      calls.push(`socket ${domain} ${type} ${protocol}`);
      return fd;
    },
    bind: () => void calls.push('bind'),
    getsockname: (_, address) => {
      new DataView(address.buffer).setUint32(4, 777, true);
    },
    setsockopt: (_, level, option, value) => {
      calls.push(`set ${level} ${option} ${new DataView(value.buffer).getInt32(0, true)}`);
    },
    getsockopt: () => void calls.push('get'),
    attachFilter: () => void calls.push('filter'),
    send: async (_, data) => void calls.push(`send ${data.length}`),
    receive: () => undefined,
    datagramBatch: (count, capacity) => new DatagramBatch(count, capacity, () => 0n),
    receiveBatch: () => 0,
    receiveInWorker: async () => undefined,
    watch: () => ({ close() {} }),
    close: (closed) => void calls.push(`close ${closed}`),
    ...overrides,
  };
  return { libc, calls };
}

test('a netlink socket is opened with a receive buffer, extended acknowledgements and an address from the kernel', () => {
  const { libc, calls } = fakeLibc();
  const transport = openTransport(libc, NETLINK_NETFILTER, { receiveBuffer: 1000 });
  assert.equal(transport.portId, 777);
  assert.deepEqual(calls, [
    'socket 16 3 12',
    `set ${SOL_SOCKET} ${SO_RCVBUFFORCE} 1000`,
    `set ${SOL_NETLINK} ${NETLINK_EXT_ACK} 1`,
    `set ${SOL_NETLINK} ${NETLINK_CAP_ACK} 1`,
    'bind',
  ]);
});

test('without privilege, netlink buffers stay within the system limits', async () => {
  const { libc, calls } = fakeLibc();
  const set = libc.setsockopt;
  libc.setsockopt = (fd_, level, option, value) => {
    if (option === SO_RCVBUFFORCE || option === SO_SNDBUFFORCE) throw new SystemError('setsockopt', EPERM);
    set(fd_, level, option, value);
  };
  const transport = openTransport(libc, NETLINK_NETFILTER, { receiveBuffer: 1000 });
  await transport.send(new Uint8Array(10));
  assert.ok(calls.includes(`set ${SOL_SOCKET} ${SO_RCVBUF} 1000`));
  assert.ok(calls.some((call) => call.startsWith(`set ${SOL_SOCKET} ${SO_SNDBUF} `)));
});

test('the send buffer grows with the largest datagram and does not shrink', async () => {
  const { libc, calls } = fakeLibc();
  const transport = openTransport(libc, NETLINK_NETFILTER);
  calls.length = 0;
  await transport.send(new Uint8Array(100));
  await transport.send(new Uint8Array(200));
  await transport.send(new Uint8Array(5 << 20));
  assert.deepEqual(calls, [
    `set ${SOL_SOCKET} ${SO_SNDBUFFORCE} ${1 << 20}`,
    'send 100',
    'send 200',
    `set ${SOL_SOCKET} ${SO_SNDBUFFORCE} ${(5 << 20) + 4096}`,
    `send ${5 << 20}`,
  ]);
});

test('a netlink socket that cannot be configured is closed', () => {
  const { libc, calls } = fakeLibc({
    bind: () => {
      throw new SystemError('bind', EPERM);
    },
  });
  assert.throws(() => openTransport(libc, NETLINK_NETFILTER), /bind: EPERM/);
  assert.equal(calls.at(-1), `close ${fd}`);
});

test('a descriptor that a worker thread uses is closed when the worker is done', async () => {
  let finish = (_length: number | undefined) => {};
  const { libc, calls } = fakeLibc({
    receiveInWorker: () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  });
  const transport = openTransport(libc, NETLINK_NETFILTER);
  const receiving = transport.receiveInWorker();
  transport.close();
  transport.close();
  assert.ok(!calls.includes(`close ${fd}`));
  finish(undefined);
  await receiving;
  assert.equal(calls.filter((call) => call === `close ${fd}`).length, 1);
  assert.throws(() => transport.receive(), /EBADF/);
  assert.throws(() => transport.watch(() => {}), /EBADF/);
  await assert.rejects(transport.send(new Uint8Array(1)), /EBADF/);
});

test('a datagram larger than the buffer is an error and not cut off', () => {
  const { libc } = fakeLibc({ receive: () => 70_000 });
  assert.throws(
    () => openTransport(libc, NETLINK_NETFILTER).receive(),
    /datagram of 70000 bytes was cut off/,
  );
});

test('a datagram has the port of its sender', () => {
  const { libc } = fakeLibc({
    receive: (_, buffer, sender) => {
      buffer.set([1, 2, 3]);
      new DataView(sender.buffer).setUint32(4, 4242, true);
      return 3;
    },
  });
  const datagram = openTransport(libc, NETLINK_NETFILTER).receive();
  assert.deepEqual([[...(datagram?.bytes ?? [])], datagram?.sender], [[1, 2, 3], 4242]);
});

test('datagrams that one call received are passed on one by one, and one that was cut off fails alone', () => {
  const batches = [[20, 64, 65, 24], [16]];
  const { libc } = fakeLibc({
    receiveBatch: (_, { headers }) => {
      const lengths = batches.shift() ?? [];
      const view = new DataView(headers.buffer);
      for (const [i, length] of lengths.entries()) view.setUint32(i * 64 + 56, length, true);
      return lengths.length;
    },
  });
  const transport = openTransport(libc, NETLINK_NETFILTER, { batch: { count: 4, capacity: 64 } });
  const lengths = () => transport.receive()?.bytes.length;
  assert.deepEqual([lengths(), lengths()], [20, 64]);
  assert.throws(lengths, /datagram of 65 bytes was cut off/);
  assert.deepEqual([lengths(), lengths(), lengths(), lengths()], [24, 16, undefined, undefined]);
});
