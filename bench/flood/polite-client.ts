/**
 * A client that asks /livez as a kubelet does: a connection for each request, one after the other. It is a process of its
 * own, so that nothing else delays it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedClock } from '../programs/probe.ts';

const pauseMs = 50;
const patienceMs = 10_000;

export interface Politeness {
  /** Times to the answer in ms; of a request without an answer, the time until the client gave up. */
  readonly times: readonly number[];
  readonly failed: number;
}

export class PoliteClient {
  readonly #child: ChildProcess = fork(import.meta.filename);

  /** Stops asking and resolves to what came of it. */
  async stop(): Promise<Politeness> {
    this.#child.send('stop');
    const [politeness] = (await once(this.#child, 'message')) as [Politeness];
    this.#child.kill();
    await once(this.#child, 'close');
    return politeness;
  }
}

async function ask(): Promise<void> {
  const stopping = once(process, 'message');
  let isOn = true;
  void stopping.then(() => {
    isOn = false;
  });
  const times: number[] = [];
  let failed = 0;
  do {
    const begun = sharedClock();
    if (!(await isAnswered())) failed++;
    times.push(sharedClock() - begun);
    await sleep(pauseMs);
  } while (isOn);
  process.send?.({ times, failed } satisfies Politeness);
}

function isAnswered(): Promise<boolean> {
  return new Promise((settle) => {
    const options = { host: '127.0.0.1', port: 10256, path: '/livez', agent: false, timeout: patienceMs };
    const request = get(options, (response) => {
      response.resume();
      response.once('end', () => settle(response.statusCode === 200));
      response.once('error', () => settle(false));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => settle(false));
  });
}

if (import.meta.main) {
  process.on('disconnect', () => process.exit());
  await ask();
}
