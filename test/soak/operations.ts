import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../cluster/apiserver/faults.ts';
import type { Watch } from '../cluster/apiserver/watch.ts';
import { FloodClient } from '../cluster/flood/client.ts';
import type { Behaviour, Flood } from '../cluster/flood/flood.ts';
import { paced } from '../cluster/lab/pace.ts';
import { runInNode } from '../contract/node-commands.ts';
import { zones } from '../contract/objects.ts';
import type { StartedProxy } from '../program/started.ts';
import { patience } from './model/tolerances.ts';
import type { Run } from './run.ts';

/** Something that happens to the cluster, to the program or around it. */
export interface Operation {
  readonly name: string;
  /** How often it happens, compared with the others. */
  readonly weight: number;
  /** Modes in which it happens; all when absent. */
  readonly modes?: readonly string[];
  /** Resolves when everything is in effect again, or will be without further help. */
  run(run: Run): Promise<void>;
}

const HOUR_MS = 3_600_000;

/** Changes of objects. The other operations are faults. */
const changes: readonly Operation[] = [
  {
    name: 'change',
    weight: 40,
    run: async (run) => {
      await run.changeService();
      await run.settle();
    },
  },
  { name: 'change without waiting', weight: 25, run: (run) => run.changeService() },
  {
    name: 'many changes at once',
    weight: 5,
    run: async (run) => {
      await changeSome(run, 12);
      await run.settle();
    },
  },
];

export const faults: readonly Operation[] = [
  { name: 'watch disturbed', weight: 4, run: disturbWatches },
  { name: 'request failed', weight: 2, run: failRequests },
  { name: 'history compacted', weight: 1, run: compact },
  { name: 'API server away', weight: 1, run: disconnect },
  { name: 'kill -9', weight: 2, run: (run) => restart(run, 'SIGKILL') },
  { name: 'SIGTERM', weight: 1, run: (run) => restart(run, 'SIGTERM') },
  { name: 'SIGSTOP and SIGCONT', weight: 2, run: halt },
  { name: 'rules flushed', weight: 2, run: (run) => tamper(run, () => flush(run)) },
  { name: 'table tampered with', weight: 2, run: (run) => tamper(run, () => tamperWithPart(run)) },
  { name: 'zone of the node changed', weight: 1, run: moveNode },
  { name: 'address of the node changed', weight: 1, run: changeAddress },
  { name: 'addresses added and removed', weight: 1, run: changeLocalAddresses },
  { name: 'clock step', weight: 2, run: stepClock },
  { name: 'HTTP flood', weight: 1, run: flood },
];

export const operations: readonly Operation[] = [...changes, ...faults];

async function changeSome(run: Run, most: number): Promise<void> {
  for (let i = run.dice.below(most + 1); i > 0; i--) await run.changeService();
}

/** Disturbs one or several watches, between changes. */
async function disturbWatches(run: Run): Promise<void> {
  const { dice, cluster } = run;
  const [name, disturb] = dice.pick(disturbances);
  run.timeline.note(`watches: ${name}`);
  await changeSome(run, 2);
  const watches = cluster.api.watches();
  // Drawn for every watch that there may be, so that later draws do not depend on how many there are now.
  const isChosen = Array.from({ length: 8 }, () => dice.isLucky(0.6));
  for (const [i, watch] of watches.entries()) if (isChosen[i]) disturb(watch);
  await changeSome(run, 2);
  if (name === 'stall') for (const watch of watches) watch.drop();
  await run.quiet();
}

const disturbances: readonly (readonly [string, (watch: Watch) => void])[] = [
  ['cut', (watch) => watch.drop()],
  ['end', (watch) => watch.end()],
  ['cut inside an event', (watch) => watch.cutInsideEvent()],
  ['garbage', (watch) => watch.garbage()],
  ['stall', (watch) => watch.stall()],
  ['duplicate', (watch) => watch.duplicate()],
  ['bookmark', (watch) => watch.bookmark()],
  ['error 410', (watch) => watch.error(410, 'Expired', 'too old')],
  ['error 500', (watch) => watch.error(500, 'InternalError', 'etcd is tired')],
];

async function failRequests(run: Run): Promise<void> {
  const { dice, cluster } = run;
  const fault = dice.pick<Fault>([
    { kind: 'status', status: 500 },
    { kind: 'status', status: 410, reason: 'Expired' },
    { kind: 'status', status: 429, retryAfter: 0 },
    { kind: 'reset' },
    { kind: 'garbage' },
    { kind: 'cut', afterBytes: 500 },
    { kind: 'trickle', bytes: 2_000, everyMs: 5 },
  ]);
  run.timeline.note(`next requests: ${JSON.stringify(fault)}`);
  for (let i = 0; i <= dice.below(2); i++) cluster.api.faults.next(fault);
  for (const watch of cluster.api.watches()) watch.drop();
  await changeSome(run, 2);
  await run.quiet();
  cluster.api.faults.clear();
}

/** The history is forgotten while the watches are down: the program has to list everything again. */
async function compact(run: Run): Promise<void> {
  for (const watch of run.cluster.api.watches()) watch.drop();
  await changeSome(run, 3);
  run.cluster.api.store.compact();
  await run.quiet();
}

async function disconnect(run: Run): Promise<void> {
  run.cluster.api.disconnect();
  await changeSome(run, 3);
  run.cluster.api.disconnect();
  await run.quiet();
}

/** Ends the program; its rules stay. Objects may change while it is away. */
async function restart(run: Run, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const { program } = run.cluster;
  const end = run.model.tolerate('away');
  if (run.cluster.mode === 'userspace') await run.conversations.closeAll();
  program.signal(signal);
  await ended(program);
  await changeSome(run, 3);
  await run.startProgram();
  end();
}

async function ended({ exited }: StartedProxy): Promise<void> {
  const giveUp = sleep(paced(patience.eventMs), 'never', { ref: false });
  assert.notEqual(await Promise.race([exited, giveUp]), 'never', 'the program does not end');
}

async function halt(run: Run): Promise<void> {
  const { program } = run.cluster;
  const end = run.model.tolerate('away');
  program.signal('SIGSTOP');
  try {
    await changeSome(run, 3);
    await sleep(paced(run.dice.below(1_000)));
  } finally {
    program.signal('SIGCONT');
  }
  await run.settle();
  end();
}

/** Another program changes the rules. */
async function tamper(run: Run, change: () => Promise<unknown>): Promise<void> {
  if (run.dice.isLucky(0.5)) await run.changeService();
  const end = run.model.tolerate('flush');
  await change();
  await run.quiet();
  end();
}

/** Without any rule the kernel no longer translates addresses: a packet of an open connection would end that. */
async function flush({ conversations, cluster }: Run): Promise<void> {
  await conversations.closeAll();
  await cluster.wipe();
}

async function tamperWithPart(run: Run): Promise<void> {
  const family = run.dice.pick(['', '6']);
  const part = run.dice.below(3);
  run.timeline.note(`family ip${family}, part ${part}`);
  await (run.cluster.mode === 'nftables'
    ? tamperWithTable(`ip${family}`, part)
    : tamperWithRules(run, family, part));
}

async function tamperWithTable(family: string, part: number): Promise<void> {
  const command = [
    `flush map ${family} kube-proxy handlers`,
    `flush map ${family} kube-proxy frontends`,
    `insert rule ${family} kube-proxy nat-prerouting accept`,
  ][part];
  await runInNode('nft', command ?? '');
}

async function tamperWithRules(run: Run, family: string, part: number): Promise<void> {
  if (run.cluster.mode === 'userspace') {
    // It is the only table that translates addresses, so open connections break as in `flush`.
    await run.conversations.closeAll();
    await runInNode('nft', `delete table ip${family} kube-proxy-userspace`);
    return;
  }
  const chain = ['KUBE-SERVICES', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'][part] ?? '';
  await runInNode(`ip${family}tables`, '-w', '5', '-t', 'nat', '-F', chain);
}

async function moveNode(run: Run): Promise<void> {
  const zone = run.model.node.zone === zones.there ? zones.here : zones.there;
  run.timeline.note(`zone of the node: ${zone}`);
  run.changeNode({ zone });
  await run.settleNode();
}

/** The program ends when the address of its Node changes, so that its supervisor starts it again. */
async function changeAddress(run: Run): Promise<void> {
  const { program } = run.cluster;
  const address = run.model.node.address === 'nodeSecond' ? 'node' : 'nodeSecond';
  run.timeline.note(`address of the node: ${address}`);
  const end = run.model.tolerate('away');
  if (run.cluster.mode === 'userspace') await run.conversations.closeAll();
  run.changeNode({ address });
  await ended(program);
  await run.startProgram();
  end();
}

/** Addresses that no connection uses. */
async function changeLocalAddresses(run: Run): Promise<void> {
  for (const address of ['192.0.2.77/32', '2001:db8:0:1::77/128']) {
    await runInNode('ip', 'addr', 'add', address, 'dev', 'lo');
    await changeSome(run, 2);
    await runInNode('ip', 'addr', 'del', address, 'dev', 'lo');
  }
  await run.settle();
}

async function stepClock(run: Run): Promise<void> {
  const step = run.dice.pick([-24, -1, 1, 24]) * HOUR_MS;
  run.timeline.note(`clock set by ${step / HOUR_MS} h`);
  run.setClock(run.clockShiftMs + step);
  await changeSome(run, 3);
  await run.settle();
}

const behaviours: readonly Behaviour[] = ['pipelined', 'unread', 'slow', 'half', 'silent'];
const FLOOD_MS = 1_500;

/** Another process floods the health and metrics ports, while objects change. */
async function flood(run: Run): Promise<void> {
  const behaviour = run.dice.pick(behaviours);
  const flood: Flood = {
    name: behaviour,
    behaviour,
    connections: 100,
    depth: 20,
    targets: [
      { host: '127.0.0.1', port: 10256, path: '/livez' },
      { host: '127.0.0.1', port: 10249, path: '/metrics' },
    ],
  };
  run.timeline.note(`flood: ${behaviour}`);
  const client = new FloodClient(flood);
  try {
    await Promise.race([client.started(), sleep(paced(FLOOD_MS))]);
    await changeSome(run, 3);
    await run.settle();
    await sleep(paced(FLOOD_MS));
    const { status } = await fetch('http://127.0.0.1:10256/livez', {
      signal: AbortSignal.timeout(paced(30_000)),
    });
    assert.equal(status, 200, '/livez during a flood');
  } finally {
    await client.stop();
  }
  await run.settle();
}
