import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { kubeSource } from '../../src/sources/kube.ts';
import { type ApiServer, startApiServer } from '../cluster/apiserver/server.ts';
import { apiService } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { LogRecorder } from '../log-recorder.ts';
import { contentTypes, encodings, fastTuning, Mirror, plainAccess, testClient } from './harness.ts';

const count = 100;
/** Long idle times, so that no watch is reopened because of silence. */
const tuning = { ...fastTuning, idleMs: 60_000, listIdleMs: 60_000, watchSeconds: [600, 600] } as const;

/** So many nodes that watch the Services of one server. */
class ManyNodes {
  readonly #nodes: readonly { stop(): Promise<void>; readonly mirror: Mirror }[];

  constructor(server: ApiServer, encoding: (typeof encodings)[number]) {
    this.#nodes = Array.from({ length: count }, (_, i) => {
      const client = testClient(plainAccess(server.url), { contentTypes: contentTypes[encoding] });
      const source = kubeSource({
        client,
        location: server.url,
        nodeName: `node-${i}`,
        clock: systemClock,
        logger: new LogRecorder(),
        tuning,
      });
      const mirror = new Mirror();
      source.start(['services'], mirror);
      return {
        mirror,
        stop: async () => {
          await source.stop();
          client.close();
        },
      };
    });
  }

  async know(name: string): Promise<void> {
    const isKnown = () => this.#nodes.every(({ mirror }) => mirror.of('services').has(`shop/${name}`));
    await eventually(`all nodes know ${name}`, isKnown);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }
}

function listsIn(requests: ApiServer['requests']): number {
  return requests.filter(({ query }) => !query.has('resourceVersion') && !query.has('continue')).length;
}

describe(`${count} nodes whose connections all break`, () => {
  for (const encoding of encodings) {
    for (const [outcome, forgets] of [
      ['list nothing if the server still has the changes', false],
      ['list once each if the server has forgotten the changes', true],
    ] as const) {
      test(`${outcome} (${encoding})`, async () => {
        const server = await startApiServer();
        server.put('services', apiService('first'));
        const nodes = new ManyNodes(server, encoding);
        try {
          await nodes.know('first');
          await eventually('all watches are open', () => server.watches().length === count);
          const before = server.requests.length;
          server.disconnect();
          server.put('services', apiService('second'));
          if (forgets) server.store.compact();
          await nodes.know('second');
          assert.equal(listsIn(server.requests.slice(before)), forgets ? count : 0);
        } finally {
          await nodes.stop();
          await server.close();
        }
      });
    }
  }
});
