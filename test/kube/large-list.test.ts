import assert from 'node:assert/strict';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../src/lib/clock.ts';
import type { EndpointSliceObject } from '../../src/model/objects.ts';
import { kubeSource } from '../../src/sources/kube.ts';
import { eventually } from '../eventually.ts';
import { LogRecorder } from '../log-recorder.ts';
import {
  contentTypes,
  type Encoding,
  encodings,
  listKinds,
  Mirror,
  plainAccess,
  testClient,
} from './harness.ts';

const services = 10_000;
const endpointsEach = 10;

/** The server runs in a thread of its own, or its work would be measured too. */
async function startServerThread(encoding: Encoding) {
  const file = new URL('./large-server.ts', import.meta.url);
  const worker = new Worker(file, { workerData: { services, endpointsEach, encoding } });
  const [{ url, bytes }] = (await once(worker, 'message')) as [{ url: string; bytes: number }];
  return {
    url,
    bytes,
    async stop() {
      worker.postMessage('stop');
      await once(worker, 'message');
      await worker.terminate();
    },
  };
}

const cases = encodings.flatMap((encoding) => listKinds.map((lists) => ({ encoding, lists })));

const fixed = (n: number) => n.toFixed(1);
const mebibytes = (n: number) => fixed(n / 2 ** 20);

describe(`${services * endpointsEach} endpoints`, () => {
  for (const { encoding, lists } of cases) {
    test(`are listed without blocking the event loop (${encoding}, ${lists})`, async (t) => {
      const server = await startServerThread(encoding);
      const client = testClient(plainAccess(server.url), { contentTypes: contentTypes[encoding] });
      const source = kubeSource({
        client,
        location: '',
        nodeName: 'n',
        streamsLists: lists === 'streamed',
        clock: systemClock,
        logger: new LogRecorder(),
      });
      const mirror = new Mirror();
      try {
        const delay = monitorEventLoopDelay({ resolution: 1 });
        const rss = process.memoryUsage().rss;
        const startedAt = performance.now();
        delay.enable();
        source.start(['endpointSlices'], mirror);
        const isSynced = () => mirror.syncedResources.length === 1;
        await eventually('synced', isSynced, { withinMs: 60_000, everyMs: 3 });
        delay.disable();
        const seconds = (performance.now() - startedAt) / 1000;
        const slices = [...mirror.of('endpointSlices').values()] as EndpointSliceObject[];
        assert.equal(
          slices.reduce((sum, { endpoints }) => sum + endpoints.length, 0),
          services * endpointsEach,
        );
        t.diagnostic(
          `${mebibytes(server.bytes)} MiB in ${fixed(seconds)} s; the event loop was held for at most ` +
            `${fixed(delay.max / 1e6)} ms, 99% of the time under ${fixed(delay.percentile(99) / 1e6)} ms; ` +
            `memory grew by ${mebibytes(process.memoryUsage().rss - rss)} MiB`,
        );
      } finally {
        await source.stop();
        client.close();
        await server.stop();
      }
    });
  }
});
