import { EpollQueue } from './epoll-queue.ts';
import { type Call, type Koffi, loadKoffi } from './koffi.ts';
import type { ReadyQueue, Sockets } from './sockets.ts';
import { SystemError } from './system-error.ts';

const SOCK_FLAGS = 0o2000000 | 0o4000;
const SOL_SOCKET = 1;
const SO_ERROR = 4;
const SO_LINGER = 13;
const MSG_NOSIGNAL = 0x4000;
const SHUT_WR = 1;
const O_FLAGS = 0o2000000 | 0o4000;
const F_SETPIPE_SZ = 1031;
const SPLICE_FLAGS = 0x1 | 0x2;
const RLIMIT_NOFILE = 7;
/** Limits above this count as unlimited. */
const noLimit = 2 ** 53 - 1;

/** Binds the socket calls of the C library. */
export async function loadSockets(): Promise<Sockets> {
  return new KoffiSockets(await loadKoffi());
}

class KoffiSockets implements Sockets {
  readonly #koffi: Koffi;
  readonly #library: ReturnType<Koffi['load']>;
  readonly #socket: Call<[number, number, number]>;
  readonly #bind: Call<[number, Uint8Array, number]>;
  readonly #listen: Call<[number, number]>;
  readonly #accept4: Call<[number, Uint8Array, Uint32Array, number]>;
  readonly #connect: Call<[number, Uint8Array, number]>;
  readonly #getsockname: Call<[number, Uint8Array, Uint32Array]>;
  readonly #setsockopt: Call<[number, number, number, Int32Array, number]>;
  readonly #getsockopt: Call<[number, number, number, Int32Array | Uint8Array, Uint32Array]>;
  readonly #read: Call<[number, Uint8Array, number]>;
  readonly #send: Call<[number, Uint8Array, number, number]>;
  readonly #recvfrom: Call<[number, Uint8Array, number, number, Uint8Array, Uint32Array]>;
  readonly #sendto: Call<[number, Uint8Array, number, number, Uint8Array, number]>;
  readonly #shutdown: Call<[number, number]>;
  readonly #close: Call<[number]>;
  readonly #pipe2: Call<[Int32Array, number]>;
  readonly #fcntl: Call<[number, number, number]>;
  readonly #splice: Call<[number, null, number, null, number, number]>;
  /** Arguments by reference, reused by all calls: calls are synchronous. */
  readonly #length = new Uint32Array(1);
  readonly #value = new Int32Array(1);
  readonly #linger = Int32Array.of(1, 0);
  readonly #ends = new Int32Array(2);

  constructor(koffi: Koffi) {
    const lib = koffi.load(null);
    this.#koffi = koffi;
    this.#library = lib;
    this.#socket = lib.func('int socket(int domain, int type, int protocol)');
    this.#bind = lib.func('int bind(int fd, const void *address, uint32_t length)');
    this.#listen = lib.func('int listen(int fd, int backlog)');
    this.#accept4 = lib.func('int accept4(int fd, void *address, void *length, int flags)');
    this.#connect = lib.func('int connect(int fd, const void *address, uint32_t length)');
    this.#getsockname = lib.func('int getsockname(int fd, void *address, void *length)');
    this.#setsockopt = lib.func('int setsockopt(int fd, int level, int name, const void *value, uint32_t n)');
    this.#getsockopt = lib.func('int getsockopt(int fd, int level, int name, void *value, void *n)');
    this.#read = lib.func('intptr_t read(int fd, void *buffer, size_t length)');
    this.#send = lib.func('intptr_t send(int fd, const void *data, size_t length, int flags)');
    this.#recvfrom = lib.func(
      'intptr_t recvfrom(int fd, void *buffer, size_t length, int flags, void *address, void *addressLength)',
    );
    this.#sendto = lib.func(
      'intptr_t sendto(int fd, const void *data, size_t n, int flags, const void *address, uint32_t length)',
    );
    this.#shutdown = lib.func('int shutdown(int fd, int how)');
    this.#close = lib.func('int close(int fd)');
    this.#pipe2 = lib.func('int pipe2(void *ends, int flags)');
    this.#fcntl = lib.func('int fcntl(int fd, int command, int value)');
    this.#splice = lib.func(
      'intptr_t splice(int from, void *fromAt, int to, void *toAt, size_t length, unsigned int flags)',
    );
  }

  socket(domain: number, type: number): number {
    return this.#result(this.#socket(domain, type | SOCK_FLAGS, 0));
  }

  bind(fd: number, address: Uint8Array): number {
    return this.#result(this.#bind(fd, address, address.length));
  }

  listen(fd: number, backlog: number): number {
    return this.#result(this.#listen(fd, backlog));
  }

  accept(fd: number, peer: Uint8Array): number {
    this.#length[0] = peer.length;
    return this.#result(this.#accept4(fd, peer, this.#length, SOCK_FLAGS));
  }

  connect(fd: number, address: Uint8Array): number {
    return this.#result(this.#connect(fd, address, address.length));
  }

  getsockname(fd: number, address: Uint8Array): number {
    this.#length[0] = address.length;
    return this.#result(this.#getsockname(fd, address, this.#length));
  }

  setOption(fd: number, level: number, option: number, value: number): number {
    this.#value[0] = value;
    return this.#result(this.#setsockopt(fd, level, option, this.#value, 4));
  }

  getOption(fd: number, level: number, option: number, value: Uint8Array): number {
    this.#length[0] = value.length;
    return this.#result(this.#getsockopt(fd, level, option, value, this.#length));
  }

  abortOnClose(fd: number): number {
    return this.#result(this.#setsockopt(fd, SOL_SOCKET, SO_LINGER, this.#linger, 8));
  }

  pendingError(fd: number): number {
    this.#length[0] = 4;
    this.#value[0] = 0;
    const result = this.#result(this.#getsockopt(fd, SOL_SOCKET, SO_ERROR, this.#value, this.#length));
    return result < 0 ? -result : (this.#value[0] ?? 0);
  }

  read(fd: number, buffer: Uint8Array): number {
    return this.#result(this.#read(fd, buffer, buffer.length));
  }

  send(fd: number, data: Uint8Array, length: number): number {
    return this.#result(this.#send(fd, data, length, MSG_NOSIGNAL));
  }

  receiveFrom(fd: number, buffer: Uint8Array, sender: Uint8Array): number {
    this.#length[0] = sender.length;
    return this.#result(this.#recvfrom(fd, buffer, buffer.length, 0, sender, this.#length));
  }

  sendTo(fd: number, data: Uint8Array, length: number, to: Uint8Array): number {
    return this.#result(this.#sendto(fd, data, length, MSG_NOSIGNAL, to, to.length));
  }

  shutdownWrite(fd: number): number {
    return this.#result(this.#shutdown(fd, SHUT_WR));
  }

  close(fd: number): number {
    return this.#result(this.#close(fd));
  }

  pipe(size: number): readonly [number, number] | undefined {
    if (this.#pipe2(this.#ends, O_FLAGS) < 0) return undefined;
    const [readEnd = -1, writeEnd = -1] = this.#ends;
    // The kernel limits the pipe memory of a user. When this fails, the pipe stays small and slower.
    this.#fcntl(writeEnd, F_SETPIPE_SZ, size);
    return [readEnd, writeEnd];
  }

  splice(from: number, to: number, length: number): number {
    return this.#result(this.#splice(from, null, to, null, length, SPLICE_FLAGS));
  }

  openQueue(maxEvents: number): ReadyQueue {
    return new EpollQueue(this.#koffi, this.#library, maxEvents);
  }

  openFileLimit(): readonly [number, number] {
    const limits = new BigUint64Array(2);
    const getrlimit: Call<[number, BigUint64Array]> = this.#library.func(
      'int getrlimit(int what, void *limits)',
    );
    if (getrlimit(RLIMIT_NOFILE, limits) < 0) throw new SystemError('getrlimit', this.#koffi.errno());
    const [soft, hard] = [...limits].map((limit) => Math.min(Number(limit), noLimit));
    return [soft ?? 0, hard ?? 0];
  }

  setOpenFileLimit(soft: number, hard: number): number {
    const setrlimit: Call<[number, BigUint64Array]> = this.#library.func(
      'int setrlimit(int what, const void *limits)',
    );
    return this.#result(setrlimit(RLIMIT_NOFILE, BigUint64Array.of(BigInt(soft), BigInt(hard))));
  }

  #result(value: number): number {
    return value >= 0 ? value : -this.#koffi.errno();
  }
}
