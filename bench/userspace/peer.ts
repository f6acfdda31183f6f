/** `peer.ts [IP PORT]`: a server for the benchmark. It echoes requests; a request that begins with B asks for a number of MiB. */
import { EventLoop } from '../../src/forwarder/event-loop.ts';
import { boundPort, openSocket } from '../../src/forwarder/open-socket.ts';
import { maxAddressBytes } from '../../src/forwarder/socket-address.ts';
import { loadSockets } from '../../src/native/koffi-sockets.ts';
import { EPOLLIN, EPOLLOUT, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET } from '../../src/native/sockets.ts';

const sockets = await loadSockets();
const loop = new EventLoop(sockets);
const buffer = new Uint8Array(new ArrayBuffer(1 << 18));
const peer = new Uint8Array(maxAddressBytes);
const [ip = '127.0.0.1', port = '0'] = process.argv.slice(2);
const listener = openSocket(sockets, SOCK_STREAM, { ip, port: Number(port) }, (fd) => {
  sockets.setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
});
sockets.listen(listener, 4096);
loop.watch(listener, EPOLLIN, { ready: accept });
process.stdout.write(`${boundPort(sockets, listener)}\n`);
for (;;) loop.turn(1_000);

function accept(): void {
  for (let i = 0; i < 64; i++) {
    const fd = sockets.accept(listener, peer);
    if (fd < 0) return;
    const token = loop.watch(fd, EPOLLIN, { ready: () => answer(fd, token) });
  }
}

function answer(fd: number, token: number): void {
  const length = sockets.read(fd, buffer);
  if (length <= 0) {
    loop.unwatch(token);
    sockets.close(fd);
  } else if (buffer[0] === 0x42) {
    loop.unwatch(token, fd);
    pour(fd, Number(Buffer.from(buffer.subarray(1, length)).toString()) * (1 << 20));
  } else {
    sockets.send(fd, buffer, length);
  }
}

function pour(fd: number, bytes: number): void {
  let left = bytes;
  const token = loop.watch(fd, EPOLLOUT, {
    ready() {
      const sent = sockets.send(fd, buffer, Math.min(left, buffer.length));
      if (sent > 0) left -= sent;
      if (left > 0 && sent >= 0) return;
      loop.unwatch(token);
      sockets.close(fd);
    },
  });
}
