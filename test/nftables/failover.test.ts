/** Two nodes, each with the real program: one takes over the open connections of the other. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { OpenConversation } from '../cluster/lab/host.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { frontends, TwoNodes } from './two-nodes.ts';

const skip = labUnavailable() ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);
const AT_ONCE = 25;

describe('a node that takes over from another', { skip }, () => {
  let lab: TwoNodes;

  before(async () => {
    lab = await TwoNodes.build(namespace);
  });
  afterEach(() => lab.stop());
  after(() => lab.close());

  /** Opens connections over node 1, moves all routes to node 2, and counts those that still have their endpoint. */
  async function survivors(address: string, count: number): Promise<number> {
    lab.routeOver(1);
    const open = await inGroups(count, async () => {
      const conversation = await lab.open(address);
      return { conversation, by: await endpointOf(conversation) };
    });
    assert.equal(new Set(open.map(({ by }) => by)).size, 4, 'every endpoint has connections');
    lab.routeOver(2);
    const answers = await inGroups(open.length, async (i) => {
      const { conversation, by } = open[i] ?? assert.fail();
      const again = await endpointOf(conversation);
      await conversation.close();
      return again === by;
    });
    return answers.filter(Boolean).length;
  }

  for (const address of frontends) {
    test(`all 1,000 connections to ${address} go on`, async () => {
      await lab.start({ 'kube-proxy-ts.dev/balance': 'hash' });
      assert.equal(await survivors(address, 1_000), 1_000);
    });
  }

  test('without a hash most connections break, since the other node chooses anew', async () => {
    await lab.start({});
    assert.ok((await survivors(frontends[0], 40)) < 30);
  });
});

async function endpointOf(conversation: OpenConversation): Promise<string | undefined> {
  return (await conversation.ask(5_000))?.by;
}

async function inGroups<T>(count: number, each: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  while (results.length < count) {
    const size = Math.min(AT_ONCE, count - results.length);
    const first = results.length;
    results.push(...(await Promise.all(Array.from({ length: size }, (_, i) => each(first + i)))));
  }
  return results;
}
