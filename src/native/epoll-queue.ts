import type { Call, Koffi } from './koffi.ts';
import type { ReadyQueue } from './sockets.ts';
import { SystemError } from './system-error.ts';

const EPOLL_CLOEXEC = 0o2000000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;

/** struct epoll_event is packed on x86-64 only. */
const eventWords = process.arch === 'x64' ? 3 : 4;
const tokenWord = eventWords - 2;

/** An epoll instance over koffi. */
export class EpollQueue implements ReadyQueue {
  readonly #koffi: Koffi;
  readonly #fd: number;
  readonly #events: Uint32Array;
  readonly #event = new Uint32Array(4);
  readonly #ctl: Call<[number, number, number, Uint32Array]>;
  readonly #wait: Call<[number, Uint32Array, number, number]>;
  readonly #close: Call<[number]>;
  #handle: ReturnType<Koffi['node']['poll']> | undefined;

  constructor(koffi: Koffi, library: ReturnType<Koffi['load']>, maxEvents: number) {
    const create: Call<[number]> = library.func('int epoll_create1(int flags)');
    this.#koffi = koffi;
    this.#ctl = library.func('int epoll_ctl(int queue, int operation, int fd, void *event)');
    this.#wait = library.func('int epoll_wait(int queue, void *events, int max, int timeout)');
    this.#close = library.func('int close(int fd)');
    this.#events = new Uint32Array(new ArrayBuffer(maxEvents * eventWords * 4));
    this.#fd = create(EPOLL_CLOEXEC);
    if (this.#fd < 0) throw new SystemError('epoll_create1', koffi.errno());
  }

  add(fd: number, events: number, token: number): number {
    this.#event[0] = events;
    this.#event[tokenWord] = token;
    return this.#control(EPOLL_CTL_ADD, fd);
  }

  remove(fd: number): number {
    return this.#control(EPOLL_CTL_DEL, fd);
  }

  poll(timeoutMs: number): number {
    return Math.max(0, this.#wait(this.#fd, this.#events, this.#events.length / eventWords, timeoutMs));
  }

  events(i: number): number {
    return this.#events[i * eventWords] ?? 0;
  }

  token(i: number): number {
    return this.#events[i * eventWords + tokenWord] ?? 0;
  }

  watch(onReady: () => void): void {
    this.#handle = this.#koffi.node.poll(this.#fd, { readable: true }, onReady);
  }

  close(): void {
    this.#handle?.close();
    this.#close(this.#fd);
  }

  #control(operation: number, fd: number): number {
    const result = this.#ctl(this.#fd, operation, fd, this.#event);
    return result < 0 ? -this.#koffi.errno() : result;
  }
}
