import assert from 'node:assert/strict';
import type { FlowEvent, FlowItem, FlowList } from '../../src/inspect/traffic-api.ts';
import { openConntrackClient } from '../../src/kernel/ct/client.ts';
import { TCP } from '../../src/kernel/ct/constants.ts';
import type { Flow } from '../../src/kernel/ct/flow.ts';
import { protocolNumbers } from '../../src/kernel/numbers.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { namespace, serviceName } from '../contract/objects.ts';
import type { Scene } from '../contract/scene.ts';
import { eventually, eventuallyEqual } from '../eventually.ts';
import { inspect } from '../program/served-pages.ts';
import { FlowWatcher } from './flow-watcher.ts';
import type { Sending } from './ledger.ts';

const talks: readonly Sending[] = [
  { from: 'pod', to: 'clusterIP', of: 'talk', times: 3 },
  { from: 'node', to: 'clusterIP', of: 'talk', times: 2 },
  { from: 'client', to: 'nodePort', of: 'talk', times: 2 },
];
const amounts = ['packetsToEndpoint', 'packetsToClient', 'bytesToEndpoint', 'bytesToClient'] as const;
const marker = { from: 'pod', to: 'clusterIP', of: 'near' } as const;

/**
 * A watcher is told the end of each TCP connection once, with all its bytes, while the kernel still remembers it. It is
 * not told the ends of those that closed before it began.
 */
export async function checkEnds(scene: Scene): Promise<void> {
  const before = await closed(scene);
  const watcher = await FlowWatcher.open();
  try {
    let opened = 0;
    for (const { times, ...packet } of talks) {
      for (let i = 0; i < times; i++) {
        const conversation = await scene.open(packet);
        await conversation.ask();
        await conversation.close();
        opened++;
      }
    }
    await eventuallyEqual('every end is told', () => ends(watcher, scene, 'talk').length, opened);
    checkTold(
      ends(watcher, scene, 'talk').map(({ flow }) => flow),
      await closedSince(before, scene),
    );
    await forget(scene);
    await scene.answerer(marker);
    await eventually('a later connection is told', () => ends(watcher, scene, 'near').length > 0);
    assert.equal(ends(watcher, scene, 'talk').length, opened);
  } finally {
    watcher.close();
  }
}

function ends(
  { events }: FlowWatcher,
  scene: Scene,
  of: string,
): (FlowEvent & { readonly flow: FlowItem })[] {
  return events.filter((event): event is FlowEvent & { readonly flow: FlowItem } => {
    const { flow } = event;
    const isOfStory = flow?.family === scene.book.family && flow.service.startsWith(nameOf(scene, of));
    return event.event === 'Ended' && isOfStory;
  });
}

function nameOf(scene: Scene, of: string): string {
  return `${namespace}/${serviceName(scene.service(of).n)}:`;
}

/** Compares with what the kernel remembers. It may have seen a packet that was sent twice since then. */
function checkTold(told: readonly FlowItem[], remembered: readonly FlowItem[]): void {
  assert.ok(remembered.length > 0, 'the kernel remembers closed connections');
  for (const flow of remembered) {
    const same = told.filter(({ client }) => client === flow.client);
    assert.equal(same.length, 1, `the end of ${flow.client} is told once`);
    const [end] = same;
    assert.equal(end?.frontend, flow.frontend);
    for (const name of amounts) {
      const text = `${flow.client} ${name}: told ${end?.[name]}, remembered ${flow[name]}`;
      assert.ok((end?.[name] ?? 0) > 0 && (end?.[name] ?? 0) <= (flow[name] ?? 0), text);
    }
  }
}

/** Connections to the Service that are closed and that the kernel remembers. */
async function closed(scene: Scene): Promise<FlowItem[]> {
  const name = nameOf(scene, 'talk').slice(0, -1);
  const { items } = await inspect<FlowList>('flows', { name });
  return items.filter(
    ({ family, state }) => family === scene.book.family && /^(TIME_WAIT|CLOSE)$/.test(state),
  );
}

async function closedSince(before: readonly FlowItem[], scene: Scene): Promise<FlowItem[]> {
  const earlier = new Set(before.map(({ client }) => client));
  return (await closed(scene)).filter(({ client }) => !earlier.has(client));
}

/** Removes the entries of all TCP connections from the kernel's table, as it does itself some minutes later. */
async function forget({ book: { family } }: Scene): Promise<void> {
  const table = openConntrackClient(await loadLibc(), { clock: systemClock });
  try {
    const flows: Flow[] = [];
    const restart = () => void flows.splice(0);
    await table.forEachFlow(
      { family, protocol: protocolNumbers.TCP },
      { flow: (flow) => flows.push(flow), restart },
    );
    const closedFlows = flows.filter(({ tcpState }) => tcpState >= TCP.TIME_WAIT);
    const { failures } = await table.deleteFlows(closedFlows);
    assert.deepEqual(failures, []);
  } finally {
    table.close();
  }
}
