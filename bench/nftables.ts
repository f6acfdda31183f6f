/**
 * Measures nftables mode with a real kernel: kube-proxy-ts, the peer if set, and the same services in upstream's
 * layout, loaded by `nft`. Needs root. Everything happens in network namespaces, which are removed at the end.
 */
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setRef } from '../src/backends/nftables/layout.ts';
import type { NftClient } from '../src/kernel/nft/client.ts';
import { openKernel } from '../src/kernel/open.ts';
import { systemClock } from '../src/lib/clock.ts';
import { hasProgram } from '../test/cluster/lab/namespace.ts';
import { measureFlows } from './nftables/first-packet.ts';
import { loadRuleset, upstreamRuleset } from './nftables/upstream-layout.ts';
import type { Bench } from './part.ts';
import { Cluster, endpointPort, listenerIP, type Size } from './programs/cluster.ts';
import { coldFigures, parseSizes, programFigures, rateFigures } from './programs/figures.ts';
import { measureProgram, measureRate } from './programs/measure.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { Probe } from './programs/probe.ts';
import { ownProgram, Program, removeRules } from './programs/program.ts';
import { type Measurement, measurements, type Subject, sizeText } from './report/measurement.ts';

const mode = 'nftables';
const defaultSizes = '1000x3,10000x10';
/** Beyond this many services the peer and `nft` would take many minutes. */
const patientServices = 10_000;
const ownChanges = 200;
const peerChanges = 25;
const programmedWithinMs = 120_000;
const rate = { perSecond: 500, seconds: 30 };
/** With `no rules` the kernel does not track connections either. */
const layouts = ['no rules', 'kube-proxy-ts', 'upstream layout'] as const;

type Layout = (typeof layouts)[number];

interface Task {
  readonly kind: 'programs' | 'first packets' | 'rate';
  readonly size: Size;
  readonly peer?: string;
  readonly layout?: Layout;
}

export async function run(bench: Bench): Promise<void> {
  const sizes = parseSizes(bench.sizes ?? defaultSizes);
  const measure = async (task: Task): Promise<void> => {
    bench.step(`${task.kind}, ${sizeText(task.size)}${task.layout ? `, ${task.layout}` : ''}`);
    bench.record(await inNamespace(import.meta.filename, [task]));
  };
  const peer = bench.peer === undefined ? {} : { peer: bench.peer };
  if (!hasProgram('nft', '--version')) bench.note("nft is not installed: upstream's layout is left out");
  for (const size of sizes) {
    await measure({ kind: 'programs', size, ...peer });
    // A namespace for each layout: none sees the tracked connections of another.
    for (const layout of layoutsAt(size)) await measure({ kind: 'first packets', size, layout });
  }
  const largest = sizes.filter(({ services }) => services <= patientServices).at(-1);
  if (largest) await measure({ kind: 'rate', size: largest, ...peer });
}

function layoutsAt({ services }: Size): readonly Layout[] {
  const hasUpstream = hasProgram('nft', '--version') && services <= patientServices;
  return layouts.filter((layout) => hasUpstream || layout !== 'upstream layout');
}

async function inside({ kind, size, peer, layout }: Task): Promise<Measurement[]> {
  const listener = createServer((socket) => socket.end()).listen(endpointPort, listenerIP);
  const probe = new Probe();
  try {
    if (kind === 'programs') return await comparePrograms(size, probe, peer);
    if (kind === 'rate') return await compareRates(size, probe, peer);
    return await measureLayout(size, layout ?? 'no rules');
  } finally {
    await probe.close();
    listener.close();
  }
}

async function comparePrograms(size: Size, probe: Probe, peer: string | undefined): Promise<Measurement[]> {
  const subject = (program: string): Subject => ({ part: mode, topic: 'whole programs', program, size });
  const own = await measureProgram({ path: ownProgram, mode }, size, probe, ownChanges);
  const measured = programFigures(subject('kube-proxy-ts'), own);
  if (size.services > patientServices) return measured;
  if (peer) {
    const theirs = await measureProgram({ path: peer, mode }, size, probe, peerChanges);
    measured.push(...programFigures(subject('peer'), theirs));
  }
  if (hasProgram('nft', '--version')) {
    removeRules();
    const { seconds, cpu } = loadRuleset(upstreamRuleset(size, 'tcp'));
    measured.push(...coldFigures(subject('nft -f'), seconds, cpu));
  }
  return measured;
}

async function measureLayout(size: Size, layout: Layout): Promise<Measurement[]> {
  if (layout === 'kube-proxy-ts') await programRules(size);
  if (layout === 'upstream layout') loadRuleset(upstreamRuleset(size, 'udp'));
  const { flowsPerSecond, cpuMicros } = await measureFlows(size);
  return measurements(
    { part: mode, topic: 'first packets of new flows', program: layout, size },
    { 'flows/s': [flowsPerSecond, ''], 'CPU per flow': [cpuMicros, 'µs'] },
  );
}

/** Leaves our own rules for UDP services in the kernel, with no program running. */
async function programRules(size: Size): Promise<void> {
  const cluster = await Cluster.open(size, { mode, protocol: 'UDP' });
  const program = new Program(ownProgram, cluster.config);
  const kernel = await openKernel(systemClock);
  try {
    const end = performance.now() + programmedWithinMs;
    while ((await countClusterAddresses(kernel.nft)) < size.services) {
      if (performance.now() > end) throw new Error('the services were not programmed in time');
      await sleep(500);
    }
  } finally {
    kernel.close();
    await program.stop();
    await cluster.close();
  }
}

async function countClusterAddresses(nft: NftClient): Promise<number> {
  const set = setRef('IPv4', 'cluster-addresses');
  if (!(await nft.getTable(set.table))) return 0;
  let count = 0;
  await nft.listElements(set, (elements, restarted) => {
    count = (restarted ? 0 : count) + elements.length;
  });
  return count;
}

async function compareRates(size: Size, probe: Probe, peer: string | undefined): Promise<Measurement[]> {
  const topic = `a stream of ${rate.perSecond} changes a second`;
  const figuresOf = async (program: string, path: string) =>
    rateFigures(
      { part: mode, topic, program, size },
      await measureRate({ path, mode }, size, probe, rate.perSecond, rate.seconds),
    );
  const own = await figuresOf('kube-proxy-ts', ownProgram);
  return peer === undefined ? own : [...own, ...(await figuresOf('peer', peer))];
}

if (import.meta.main) {
  const [task] = taskOf<[Task]>(process.argv);
  handBack(await inside(task));
}
