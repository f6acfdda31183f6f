/** A client for the benchmark. Prints one line of JSON with what it measured. */
import { readFileSync } from 'node:fs';
import { EventLoop } from '../../src/forwarder/event-loop.ts';
import { encodeAddress } from '../../src/forwarder/socket-address.ts';
import { loadSockets } from '../../src/native/koffi-sockets.ts';
import {
  AF_INET,
  EPOLLERR,
  EPOLLHUP,
  EPOLLIN,
  EPOLLOUT,
  IPPROTO_TCP,
  SOCK_STREAM,
  TCP_NODELAY,
} from '../../src/native/sockets.ts';

export interface ClientTask {
  readonly kind: 'connections' | 'questions' | 'bytes';
  /** 127.0.0.1 when absent. */
  readonly ip?: string;
  readonly port: number;
  /** Connections, questions or MiB. */
  readonly count: number;
  readonly concurrency: number;
}

export interface ClientResult {
  readonly seconds: number;
  readonly failures: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** CPU time of the whole machine meanwhile. */
  readonly machineCpuSeconds: number;
}

type Measured = Omit<ClientResult, 'machineCpuSeconds'>;

/** The client gives up when no connection makes progress for this long. */
const stallMs = 10_000;
const sockets = await loadSockets();
const loop = new EventLoop(sockets);
const buffer = new Uint8Array(new ArrayBuffer(1 << 18));
const question = new Uint8Array(16).fill(0x61);

const task = JSON.parse(process.argv[2] ?? '{}') as ClientTask;
const address = encodeAddress({ ip: task.ip ?? '127.0.0.1', port: task.port });
const before = machineCpuSeconds();
const measured = task.kind === 'bytes' ? download() : talk();
const result: ClientResult = { ...measured, machineCpuSeconds: machineCpuSeconds() - before };
process.stdout.write(`${JSON.stringify(result)}\n`);

/** Sends all requests, each on a new connection or all on the same open ones. */
function talk(): Measured {
  const { kind, count, concurrency } = task;
  const times = new Float64Array(count);
  let [begun, done, failures] = [0, 0, 0];
  let lastProgress = performance.now();
  const open = (): void => {
    const fd = sockets.socket(AF_INET, SOCK_STREAM);
    sockets.setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    let start = performance.now();
    let token = -1;
    const end = (): void => {
      loop.unwatch(token);
      sockets.close(fd);
    };
    const finish = (isFailure: boolean): void => {
      times[done++] = performance.now() - start;
      if (isFailure) failures++;
      lastProgress = performance.now();
      if (kind === 'questions' && !isFailure && begun < count) {
        begun++;
        start = performance.now();
        sockets.send(fd, question, question.length);
        return;
      }
      end();
      if (begun >= count) return;
      begun++;
      open();
    };
    sockets.connect(fd, address);
    token = loop.watch(fd, EPOLLOUT, {
      ready(events) {
        loop.unwatch(token, fd);
        token = loop.watch(fd, EPOLLIN, {
          ready: () => finish(sockets.read(fd, buffer) !== question.length),
        });
        if (events & (EPOLLERR | EPOLLHUP)) finish(true);
        else sockets.send(fd, question, question.length);
      },
    });
  };
  const started = performance.now();
  for (; begun < Math.min(concurrency, count); begun++) open();
  while (done < count) {
    loop.turn(100);
    if (performance.now() - lastProgress > stallMs) break;
  }
  const seconds = (performance.now() - started) / 1000;
  const sorted = times.subarray(0, done).toSorted();
  const at = (part: number): number => sorted[Math.floor(done * part)] ?? Number.NaN;
  return { seconds, failures: failures + count - done, p50: at(0.5), p99: at(0.99) };
}

/** Requests all data on one connection, and counts what arrives. */
function download(): Measured {
  const wanted = task.count * (1 << 20);
  const fd = sockets.socket(AF_INET, SOCK_STREAM);
  sockets.connect(fd, address);
  let received = 0;
  let isOver = false;
  const request = Buffer.from(`B${task.count}`);
  const token = loop.watch(fd, EPOLLOUT, {
    ready() {
      loop.unwatch(token, fd);
      sockets.send(fd, request, request.length);
      loop.watch(fd, EPOLLIN, {
        ready() {
          const length = sockets.read(fd, buffer);
          if (length > 0) received += length;
          isOver = length <= 0;
        },
      });
    },
  });
  const started = performance.now();
  while (!isOver && performance.now() - started < 60_000) loop.turn(100);
  const seconds = (performance.now() - started) / 1000;
  return { seconds, failures: received === wanted ? 0 : 1, p50: 0, p99: 0 };
}

function machineCpuSeconds(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (
    readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? ''
  )
    .split(/\s+/)
    .map(Number);
  const ticksPerSecond = 100;
  return (user + nice + system + irq + softirq) / ticksPerSecond;
}
