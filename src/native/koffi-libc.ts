import { DatagramBatch } from './datagram-batch.ts';
import { type Call, type Koffi, loadKoffi } from './koffi.ts';
import type { Libc, Watch } from './libc.ts';
import { SystemError } from './system-error.ts';

const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;
const EINTR = 4;
const EAGAIN = 11;

/** Binds the calls of the C library. */
export async function loadLibc(): Promise<Libc> {
  return new KoffiLibc(await loadKoffi());
}

class KoffiLibc implements Libc {
  readonly #koffi: Koffi;
  readonly #socket: Call<[number, number, number]>;
  readonly #bind: Call<[number, Uint8Array, number]>;
  readonly #getsockname: Call<[number, Uint8Array, Uint32Array]>;
  readonly #setsockopt: Call<[number, number, number, Uint8Array, number]>;
  readonly #getsockopt: Call<[number, number, number, Uint8Array, Uint32Array]>;
  readonly #send: Call<[number, Uint8Array, number, number]>;
  readonly #recvfrom: Call<[number, Uint8Array, number, number, Uint8Array, Uint32Array]>;
  readonly #recvmmsg: Call<[number, Uint8Array, number, number, null]>;
  readonly #close: Call<[number]>;
  /** Made once: `receive` is called for every event of the kernel. */
  readonly #senderLength = new Uint32Array(1);

  constructor(koffi: Koffi) {
    // The symbols of the running process, so that any C library works that Node was built with.
    const lib = koffi.load(null);
    this.#koffi = koffi;
    this.#socket = lib.func('int socket(int domain, int type, int protocol)');
    this.#bind = lib.func('int bind(int fd, const void *address, uint32_t length)');
    this.#getsockname = lib.func('int getsockname(int fd, void *address, void *length)');
    this.#setsockopt = lib.func('int setsockopt(int fd, int level, int name, const void *value, uint32_t n)');
    this.#getsockopt = lib.func('int getsockopt(int fd, int level, int name, void *value, void *length)');
    this.#send = lib.func('intptr_t send(int fd, const void *data, size_t length, int flags)');
    this.#recvfrom = lib.func(
      'intptr_t recvfrom(int fd, void *buffer, size_t length, int flags, void *address, void *addressLength)',
    );
    this.#recvmmsg = lib.func(
      'int recvmmsg(int fd, void *headers, uint32_t count, int flags, void *timeout)',
    );
    this.#close = lib.func('int close(int fd)');
  }

  socket(domain: number, type: number, protocol: number): number {
    return this.#check('socket', this.#socket(domain, type | SOCK_CLOEXEC, protocol));
  }

  bind(fd: number, address: Uint8Array): void {
    this.#check('bind', this.#bind(fd, address, address.length));
  }

  getsockname(fd: number, address: Uint8Array): void {
    this.#check('getsockname', this.#getsockname(fd, address, Uint32Array.of(address.length)));
  }

  setsockopt(fd: number, level: number, option: number, value: Uint8Array): void {
    this.#check('setsockopt', this.#setsockopt(fd, level, option, value, value.length));
  }

  getsockopt(fd: number, level: number, option: number, value: Uint8Array): void {
    this.#check('getsockopt', this.#getsockopt(fd, level, option, value, Uint32Array.of(value.length)));
  }

  attachFilter(fd: number, program: Uint8Array): void {
    // struct sock_fprog: a 16-bit instruction count, padding, and the address of the instructions.
    const pinned = new Uint8Array(new ArrayBuffer(Math.max(program.length, 64)));
    pinned.set(program);
    const description = new BigUint64Array([BigInt(program.length / 8), this.#koffi.address(pinned)]);
    this.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, new Uint8Array(description.buffer));
  }

  send(fd: number, data: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const attempt = () =>
        this.#send.async(fd, data, data.length, 0, (error: unknown, sent: number) => {
          if (error) return reject(error);
          if (sent >= 0) return resolve();
          const errno = this.#koffi.errno();
          if (errno === EINTR) attempt();
          else reject(new SystemError('send', errno));
        });
      attempt();
    });
  }

  receive(fd: number, buffer: Uint8Array, sender: Uint8Array): number | undefined {
    for (;;) {
      const flags = MSG_DONTWAIT | MSG_TRUNC;
      this.#senderLength[0] = sender.length;
      const length = this.#recvfrom(fd, buffer, buffer.length, flags, sender, this.#senderLength);
      if (length >= 0) return length;
      const errno = this.#koffi.errno();
      if (errno === EAGAIN) return undefined;
      if (errno !== EINTR) throw new SystemError('recvfrom', errno);
    }
  }

  datagramBatch(count: number, capacity: number): DatagramBatch {
    return new DatagramBatch(count, capacity, (bytes) => this.#koffi.address(bytes));
  }

  receiveBatch(fd: number, batch: DatagramBatch): number {
    for (;;) {
      const received = this.#recvmmsg(fd, batch.headers, batch.count, MSG_DONTWAIT | MSG_TRUNC, null);
      if (received >= 0) return received;
      const errno = this.#koffi.errno();
      if (errno === EAGAIN) return 0;
      if (errno !== EINTR) throw new SystemError('recvmmsg', errno);
    }
  }

  receiveInWorker(fd: number, buffer: Uint8Array, sender: Uint8Array): Promise<number | undefined> {
    const flags = MSG_DONTWAIT | MSG_TRUNC;
    // An explicit ArrayBuffer: V8 keeps small arrays in its heap, where garbage collection could move them meanwhile.
    const senderLength = new Uint32Array(new ArrayBuffer(4)).fill(sender.length);
    return new Promise((resolve, reject) => {
      const done = (error: unknown, length: number) => {
        if (error) return reject(error);
        if (length >= 0) return resolve(length);
        const errno = this.#koffi.errno();
        if (errno === EAGAIN) resolve(undefined);
        else if (errno === EINTR) attempt();
        else reject(new SystemError('recvfrom', errno));
      };
      const attempt = () =>
        this.#recvfrom.async(fd, buffer, buffer.length, flags, sender, senderLength, done);
      attempt();
    });
  }

  watch(fd: number, onReadable: () => void): Watch {
    let open = true;
    const options = { readable: true };
    const onEvent = (...[status]: unknown[]) => {
      onReadable();
      // libuv stops a handle whose socket has a pending error, such as a notification overrun. The callback has read
      // and so cleared the error, so watching can go on.
      if (status !== 0 && open) handle.start(options, onEvent);
    };
    const handle = this.#koffi.node.poll(fd, options, onEvent);
    return {
      close() {
        if (open) handle.close();
        open = false;
      },
    };
  }

  close(fd: number): void {
    this.#check('close', this.#close(fd));
  }

  #check(syscall: string, result: number): number {
    if (result < 0) throw new SystemError(syscall, this.#koffi.errno());
    return result;
  }
}
