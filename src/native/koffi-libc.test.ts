import assert from 'node:assert/strict';
import { before, suite, test } from 'node:test';
import { loadLibc } from './koffi-libc.ts';
import { AF_NETLINK, type Libc, SOCK_RAW, SOL_SOCKET } from './libc.ts';
import { SystemError } from './system-error.ts';

/** Runs without privilege: the route family of netlink answers anyone. */

const NETLINK_ROUTE = 0;
const badFd = 0x7ffffff0;

suite('libc over FFI', { skip: process.platform !== 'linux' && 'needs Linux' }, () => {
  let libc: Libc;
  before(async () => {
    libc = await loadLibc();
  });

  test('the kernel answers a request into the given buffer', async () => {
    const fd = openSocket(libc);
    try {
      const whole = new Uint8Array(new ArrayBuffer(70_000)).fill(0xee);
      const buffer = whole.subarray(1000, 66_000);
      const sender = new Uint8Array(new ArrayBuffer(12)).fill(0xee);
      assert.equal(libc.receive(fd, buffer, sender), undefined);
      await libc.send(fd, linkDump(7));
      const length = await libc.receiveInWorker(fd, buffer, sender);
      assert.ok(length !== undefined && length > 16);
      assert.deepEqual([...sender], [16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
      assert.equal(new DataView(buffer.buffer, buffer.byteOffset).getUint32(8, true), 7);
      assert.ok(whole.subarray(0, 1000).every((byte) => byte === 0xee));
    } finally {
      libc.close(fd);
    }
  });

  test('a datagram that does not fit reports its whole length', async () => {
    const fd = openSocket(libc);
    try {
      await libc.send(fd, linkDump(1));
      const buffer = new Uint8Array(new ArrayBuffer(64));
      assert.ok((libc.receive(fd, buffer, new Uint8Array(new ArrayBuffer(12))) ?? 0) > 64);
    } finally {
      libc.close(fd);
    }
  });

  test('one call receives the datagrams that are queued, as many as the batch has room for', async () => {
    const fd = openSocket(libc);
    try {
      const batch = libc.datagramBatch(2, 64);
      assert.equal(libc.receiveBatch(fd, batch), 0);
      await libc.send(fd, Buffer.concat([1, 2, 3].map(acknowledged)));
      const sequences = () =>
        Array.from({ length: libc.receiveBatch(fd, batch) }, (_, i) => {
          assert.deepEqual([batch.length(i), batch.isWhole(i), batch.sender(i).getUint32(4)], [36, true, 0]);
          const bytes = batch.bytes(i);
          return new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
        });
      assert.deepEqual([sequences(), sequences(), sequences()], [[1, 2], [3], []]);
      const small = libc.datagramBatch(1, 16);
      await libc.send(fd, acknowledged(4));
      assert.equal(libc.receiveBatch(fd, small), 1);
      assert.deepEqual([small.isWhole(0), small.length(0), small.bytes(0).length], [false, 36, 16]);
      assert.throws(() => libc.receiveBatch(badFd, batch), SystemError);
    } finally {
      libc.close(fd);
    }
  });

  test('a watch calls back when a datagram arrives, and not after close', async () => {
    const fd = openSocket(libc);
    let calls = 0;
    try {
      let onCall = () => {};
      const called = new Promise<void>((resolve) => {
        onCall = resolve;
      });
      const watch = libc.watch(fd, () => {
        calls++;
        onCall();
      });
      await libc.send(fd, linkDump(1));
      await called;
      watch.close();
      watch.close();
      const seen = calls;
      // The datagram is still unread, so an open watch would call back in every turn.
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(calls, seen);
    } finally {
      libc.close(fd);
    }
  });

  test('getsockopt reads a socket option', () => {
    const SO_TYPE = 3;
    const fd = openSocket(libc);
    try {
      const value = new Uint32Array(1);
      libc.getsockopt(fd, SOL_SOCKET, SO_TYPE, new Uint8Array(value.buffer));
      assert.equal(value[0], SOCK_RAW);
    } finally {
      libc.close(fd);
    }
  });

  test('every libc call reports a failure with its name and errno', async () => {
    const address = new Uint8Array(new ArrayBuffer(12));
    const failing: [string, string, () => unknown][] = [
      ['socket', 'EAFNOSUPPORT', () => libc.socket(999, SOCK_RAW, 0)],
      ['bind', 'EBADF', () => libc.bind(badFd, address)],
      ['getsockname', 'EBADF', () => libc.getsockname(badFd, address)],
      ['setsockopt', 'EBADF', () => libc.setsockopt(badFd, SOL_SOCKET, 1, new Uint8Array(4))],
      ['getsockopt', 'EBADF', () => libc.getsockopt(badFd, SOL_SOCKET, 1, new Uint8Array(4))],
      ['recvfrom', 'EBADF', () => libc.receive(badFd, address, address)],
      ['recvfrom', 'EBADF', () => libc.receiveInWorker(badFd, address, address)],
      ['send', 'EBADF', () => libc.send(badFd, address)],
      ['close', 'EBADF', () => libc.close(badFd)],
    ];
    for (const [syscall, code, call] of failing) {
      await assert.rejects(
        async () => call(),
        (error) => error instanceof SystemError && error.syscall === syscall && error.code === code,
        syscall,
      );
    }
  });

  test('a socket filter that drops everything leaves nothing to receive', async () => {
    const fd = openSocket(libc);
    try {
      const buffer = new Uint8Array(new ArrayBuffer(64));
      const sender = new Uint8Array(new ArrayBuffer(12));
      const noOperation = Uint8Array.of(16, 0, 0, 0, 1, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0);
      await libc.send(fd, noOperation);
      assert.equal(libc.receive(fd, buffer, sender), 36);
      libc.attachFilter(fd, Uint8Array.of(0x06, 0, 0, 0, 0, 0, 0, 0));
      await libc.send(fd, noOperation);
      assert.equal(libc.receive(fd, buffer, sender), undefined);
    } finally {
      libc.close(fd);
    }
  });
});

function openSocket(libc: Libc): number {
  const fd = libc.socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  const address = new Uint8Array(new ArrayBuffer(12));
  address[0] = AF_NETLINK;
  libc.bind(fd, address);
  libc.getsockname(fd, address);
  assert.ok(address.subarray(4, 8).some((byte) => byte !== 0));
  return fd;
}

/** RTM_GETLINK with NLM_F_REQUEST | NLM_F_DUMP. */
function linkDump(sequence: number): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(32));
  bytes.set([32, 0, 0, 0, 18, 0, 1, 3, sequence]);
  return bytes;
}

/** NLMSG_NOOP with NLM_F_ACK: the kernel only acknowledges it. */
function acknowledged(sequence: number): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(16));
  bytes.set([16, 0, 0, 0, 1, 0, 5, 0, sequence]);
  return bytes;
}
