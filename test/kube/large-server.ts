/** Thread that serves a large cluster; talks to its parent in messages. */
import { parentPort, workerData } from 'node:worker_threads';
import { startApiServer } from '../cluster/apiserver/server.ts';

interface LargeClusterData {
  readonly services: number;
  readonly endpointsEach: number;
  readonly streamingLists: 'supported' | 'refused';
}

const { services, endpointsEach, streamingLists }: LargeClusterData = workerData;
const server = await startApiServer({ streamingLists });
for (let i = 0; i < services; i++) server.put('endpointSlices', fullSlice(i));
const bytes = server.store.list('endpointSlices').reduce((sum, { json }) => sum + json.length, 0);
parentPort?.once('message', () => void server.close().then(() => parentPort?.postMessage('stopped')));
parentPort?.postMessage({ url: server.url, bytes });

/** A slice with all fields of a real one, used or not. */
function fullSlice(i: number) {
  const name = `service-number-${i}`;
  const endpoints = Array.from({ length: endpointsEach }, (_, j) => ({
    addresses: [`10.${64 + (i >> 8)}.${i & 255}.${j + 1}`],
    conditions: { ready: true, serving: true, terminating: false },
    targetRef: {
      kind: 'Pod',
      namespace: 'production',
      name: `${name}-7d4b9c8f6d-${String(j).padStart(5, 'x')}`,
      uid: `5f0c4e52-6c1d-4b4e-9d5a-${String(i * 100 + j).padStart(12, '0')}`,
    },
    nodeName: `ip-10-0-${i % 250}-${j}.eu-central-1.compute.internal`,
    zone: `eu-central-1${'abc'[j % 3]}`,
    hints: { forZones: [{ name: `eu-central-1${'abc'[j % 3]}` }] },
  }));
  return {
    metadata: {
      namespace: 'production',
      name: `${name}-abcde`,
      generateName: `${name}-`,
      uid: `0a1b2c3d-6c1d-4b4e-9d5a-${String(i).padStart(12, '0')}`,
      generation: 7,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: {
        'kubernetes.io/service-name': name,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid: name, controller: true }],
      managedFields: [
        { manager: 'kube-controller-manager', operation: 'Update', fieldsV1: { 'f:endpoints': {} } },
      ],
    },
    addressType: 'IPv4',
    endpoints,
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
}
