import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { LogRecorder } from '../../test/log-recorder.ts';
import { type SocketOwner, socketOwner } from '../kernel/socket-owner.ts';
import { systemClock } from '../lib/clock.ts';
import { CopyLock } from './copy-lock.ts';

const name = `kube-proxy-ts-test-${process.pid}`;
const cleanups = new Set<() => Promise<unknown>>();
const options = { skip: process.platform === 'linux' ? false : 'needs Linux' };

afterEach(async () => {
  for (const cleanup of cleanups) await cleanup();
  cleanups.clear();
});

function copy(about: string, owner: (name: string) => Promise<SocketOwner | undefined> = socketOwner) {
  const log = new LogRecorder();
  const lock = new CopyLock({ name, about, owner, clock: systemClock, logger: log });
  cleanups.add(() => lock.close());
  return { lock, log };
}

test('a second copy waits for the first one, tells who it is, and follows it', options, async () => {
  const first = copy('nftables mode');
  await first.lock.acquire();
  assert.deepEqual(first.lock.problems(), []);
  const second = copy('ipvs mode');
  let isAcquired = false;
  const acquired = second.lock.acquire().then(() => {
    isAcquired = true;
  });
  await eventually('a problem', () => second.lock.problems().length > 0);
  const [problem] = second.lock.problems();
  assert.equal(problem?.kind, 'AnotherCopyRuns');
  assert.match(problem?.text ?? '', new RegExp(`\\(pid ${process.pid}, nftables mode\\)`));
  assert.equal(isAcquired, false);
  assert.equal(second.log.lines.length, 1);
  await first.lock.close();
  await acquired;
  assert.deepEqual(second.lock.problems(), []);
});

test('a holder that does not answer is named by its process id', options, async () => {
  const server = createServer((socket) => socket.destroy()).listen({ path: `\0${name}` });
  const waiting = copy('nftables mode');
  const acquired = waiting.lock.acquire();
  await eventually('a problem', () => waiting.lock.problems().length > 0);
  assert.match(waiting.lock.problems()[0]?.text ?? '', /\(pid \d+, which does not answer\)/);
  server.close();
  await acquired;
});

test(
  'a client that does not hang up gets the answer and cannot keep the lock from being released',
  options,
  async () => {
    const { lock } = copy('nftables mode');
    await lock.acquire();
    const client = connect({ path: `\0${name}`, allowHalfOpen: true }).setEncoding('utf8');
    let answer = '';
    client.on('data', (part: string) => {
      answer += part;
    });
    await once(client, 'end');
    assert.equal(answer, 'nftables mode');
    let isReleased = false;
    void lock.close().then(() => {
      isReleased = true;
    });
    try {
      await eventually('the release', () => isReleased);
    } finally {
      client.destroy();
    }
  },
);

test('a user other than root cannot keep the proxy from its work', options, async () => {
  const stranger = createServer().listen({ path: `\0${name}` });
  const { lock, log } = copy('nftables mode', async () => ({
    pid: 42,
    uid: 1000 + (process.getuid?.() ?? 0),
  }));
  await lock.acquire();
  assert.deepEqual(
    log.lines.map(({ message }) => message),
    ['Starting without the lock: its holder is not root'],
  );
  stranger.close();
});
