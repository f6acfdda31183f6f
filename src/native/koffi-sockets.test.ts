import assert from 'node:assert/strict';
import { before, suite, test } from 'node:test';
import { loadSockets } from './koffi-sockets.ts';
import { AF_INET, EAGAIN, EPOLLIN, SOCK_STREAM, type Sockets } from './sockets.ts';

suite('sockets over FFI', { skip: process.platform !== 'linux' && 'needs Linux' }, () => {
  const badFd = 1_000_000;
  const EBADF = 9;
  let sockets: Sockets;
  before(async () => {
    sockets = await loadSockets();
  });

  test('socket calls return failures as negative errno values', () => {
    const address = new Uint8Array(16);
    assert.equal(sockets.socket(999, SOCK_STREAM), -97);
    const calls: (() => number)[] = [
      () => sockets.bind(badFd, address),
      () => sockets.listen(badFd, 1),
      () => sockets.accept(badFd, address),
      () => sockets.connect(badFd, address),
      () => sockets.getsockname(badFd, address),
      () => sockets.setOption(badFd, 1, 2, 1),
      () => sockets.abortOnClose(badFd),
      () => sockets.read(badFd, address),
      () => sockets.send(badFd, address, 1),
      () => sockets.receiveFrom(badFd, address, address),
      () => sockets.sendTo(badFd, address, 1, address),
      () => sockets.shutdownWrite(badFd),
      () => sockets.splice(badFd, badFd, 1),
      () => sockets.close(badFd),
    ];
    assert.deepEqual(
      calls.map((call) => call()),
      calls.map(() => -EBADF),
    );
    assert.equal(sockets.pendingError(badFd), EBADF);
  });

  test('a ready queue reports the tokens of ready descriptors until they are removed', () => {
    const queue = sockets.openQueue(8);
    const pipe = sockets.pipe(4096);
    assert.ok(pipe);
    const socket = sockets.socket(AF_INET, SOCK_STREAM);
    assert.equal(queue.add(pipe[0], EPOLLIN, 4_000_000_000), 0);
    assert.equal(queue.poll(0), 0);
    assert.equal(sockets.read(pipe[0], new Uint8Array(8)), -EAGAIN);
    sockets.close(pipe[1]);
    assert.equal(queue.poll(100), 1);
    assert.equal(queue.token(0), 4_000_000_000);
    assert.notEqual(queue.events(0), 0);
    queue.remove(pipe[0]);
    assert.equal(queue.poll(0), 0);
    for (const fd of [pipe[0], socket]) assert.equal(sockets.close(fd), 0);
    queue.close();
  });

  test('the limit of open files is read and written', () => {
    const [soft, hard] = sockets.openFileLimit();
    assert.ok(soft > 0 && hard >= soft);
    assert.equal(sockets.setOpenFileLimit(soft, hard), 0);
    assert.deepEqual(sockets.openFileLimit(), [soft, hard]);
  });
});
