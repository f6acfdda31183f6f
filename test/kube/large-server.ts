/** Thread that serves a large cluster; talks to its parent in messages. */
import { parentPort, workerData } from 'node:worker_threads';
import { startApiServer } from '../cluster/apiserver/server.ts';
import { fullSlice } from '../cluster/full-objects.ts';

interface LargeClusterData {
  readonly services: number;
  readonly endpointsEach: number;
  readonly encoding: 'json' | 'protobuf';
}

const { services, endpointsEach, encoding }: LargeClusterData = workerData;
const server = await startApiServer();
for (let i = 0; i < services; i++) {
  const addresses = Array.from(
    { length: endpointsEach },
    (_, j) => `10.${64 + (i >> 8)}.${i & 255}.${j + 1}`,
  );
  const slice = { namespace: 'production', name: `service-number-${i}`, number: i, addresses };
  server.put('endpointSlices', fullSlice(slice));
}
// Encoded before the client asks, so that it waits for nothing.
const texts = server.store.list('endpointSlices').map((slice) => slice[encoding]);
const bytes = texts.reduce((sum, { length }) => sum + length, 0);
parentPort?.once('message', () => void server.close().then(() => parentPort?.postMessage('stopped')));
parentPort?.postMessage({ url: server.url, bytes });
