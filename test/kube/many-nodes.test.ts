import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { kubeSource } from '../../src/sources/kube.ts';
import { type ApiServer, startApiServer } from '../cluster/apiserver/server.ts';
import { apiService } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { LogRecorder } from '../log-recorder.ts';
import {
  contentTypes,
  encodings,
  listKinds,
  Mirror,
  plainAccess,
  testClient,
  unhurriedTuning,
} from './harness.ts';

const count = 100;

/** So many nodes that watch the Services of one server. */
class ManyNodes {
  readonly #nodes: readonly { stop(): Promise<void>; readonly mirror: Mirror }[];

  constructor(server: ApiServer, encoding: (typeof encodings)[number], lists: (typeof listKinds)[number]) {
    this.#nodes = Array.from({ length: count }, (_, i) => {
      const client = testClient(plainAccess(server.url), { contentTypes: contentTypes[encoding] });
      const source = kubeSource({
        client,
        location: server.url,
        nodeName: `node-${i}`,
        streamsLists: lists === 'streamed',
        clock: systemClock,
        logger: new LogRecorder(),
        // Little patience with the first list only.
        tuning: { ...unhurriedTuning, firstList: { answerMs: 60_000, idleMs: 100 } },
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

function isList({ query }: { readonly query: URLSearchParams }): boolean {
  return !query.has('resourceVersion') && !query.has('continue');
}

/** What the nodes ask for after their connections broke. */
const outcomes = [
  {
    outcome: 'list nothing if the server still has the changes',
    listed: 0,
    restart: () => {},
  },
  {
    outcome: 'list once each if the server has forgotten the changes',
    listed: count,
    restart: (server: ApiServer) => server.store.compact(),
  },
  {
    outcome: 'list once each if the server has forgotten the changes and is slow to send them',
    listed: count,
    restart: (server: ApiServer) => {
      server.store.compact();
      // Silence before each list, longer than a first list may take.
      const slow = { kind: 'trickle', bytes: 1_000_000, everyMs: 300 } as const;
      for (let i = 0; i < count; i++) server.faults.next(slow, isList);
    },
  },
];

const ways = encodings.flatMap((encoding) => listKinds.map((lists) => ({ encoding, lists })));

describe(`${count} nodes whose connections all break`, () => {
  for (const { encoding, lists } of ways) {
    for (const { outcome, listed, restart } of outcomes) {
      test(`${outcome} (${encoding}, ${lists})`, async () => {
        const server = await startApiServer();
        server.put('services', apiService('first'));
        const nodes = new ManyNodes(server, encoding, lists);
        try {
          await nodes.know('first');
          await eventually('all watches are open', () => server.watches().length === count);
          const before = server.requests.length;
          server.disconnect();
          server.put('services', apiService('second'));
          restart(server);
          await nodes.know('second');
          assert.equal(server.requests.slice(before).filter(isList).length, listed);
        } finally {
          await nodes.stop();
          await server.close();
        }
      });
    }
  }
});
