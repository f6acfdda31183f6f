/**
 * nftables mode, whole programs over a real kernel: kube-proxy-ts, and beside it the kube-proxy that
 * `KUBE_PROXY_PEER` names and the same services in upstream's layout, loaded by `nft`. Needs root: everything
 * happens in network namespaces that go away with the benchmark.
 */
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setRef } from '../src/backends/nftables/layout.ts';
import type { NftClient } from '../src/kernel/nft/client.ts';
import { openKernel } from '../src/kernel/open.ts';
import { systemClock } from '../src/lib/clock.ts';
import { hasProgram } from '../test/cluster/lab/namespace.ts';
import { type FlowFigures, measureFlows } from './nftables/first-packet.ts';
import { loadRuleset, upstreamRuleset } from './nftables/upstream-layout.ts';
import { Cluster, endpointPort, listenerIP, type Size } from './programs/cluster.ts';
import { measureProgram, measureRate } from './programs/measure.ts';
import { inNamespace, taskOf } from './programs/namespace.ts';
import { Probe } from './programs/probe.ts';
import { ownProgram, Program, removeRules } from './programs/program.ts';
import {
  coldCells,
  cpuCell,
  parseSizes,
  programRow,
  type Row,
  sizeCell,
  spreadCell,
} from './programs/table.ts';

const mode = 'nftables';
const defaultSizes = '1000x3,10000x10';
/** Beyond this many services the peer and `nft` would take many minutes. */
const patientServices = 10_000;
const ownChanges = 200;
const peerChanges = 25;
const programmedWithinMs = 120_000;
const rate = { perSecond: 500, seconds: 30 };
const rateSize: Size = { services: 10_000, endpoints: 10 };
/** Without any rules the kernel does not follow connections either. */
const layouts = ['none', 'kube-proxy-ts', 'upstream layout'] as const;

type Layout = (typeof layouts)[number];
type Task = [part: 'programs' | 'layouts' | 'flows' | 'rate', size: Size, layout?: Layout];

/** `sizes` as in `1000x3,50000x10`: services and endpoints of each. */
export async function run({ sizes = defaultSizes }: { readonly sizes?: string } = {}): Promise<void> {
  for (const size of parseSizes(sizes)) {
    isolate('programs', size);
    isolate('layouts', size);
  }
  isolate('rate', rateSize);
}

function isolate(...task: Task): void {
  inNamespace(import.meta.filename, task);
}

async function inside(...[part, size, layout]: Task): Promise<void> {
  const listener = createServer((socket) => socket.end()).listen(endpointPort, listenerIP);
  const probe = new Probe();
  try {
    if (part === 'programs') console.table(await comparePrograms(size, probe));
    if (part === 'layouts') compareLayouts(size);
    if (part === 'flows' && layout) await printFlows(size, layout);
    if (part === 'rate') console.table(await compareRates(size, probe));
  } finally {
    await probe.close();
    listener.close();
  }
}

async function comparePrograms(size: Size, probe: Probe): Promise<Row[]> {
  const own = await measureProgram({ path: ownProgram, mode }, size, probe, ownChanges);
  const rows = [programRow(size, 'kube-proxy-ts', own)];
  const peer = process.env.KUBE_PROXY_PEER;
  if (size.services > patientServices) return rows;
  if (peer) {
    const theirs = await measureProgram({ path: peer, mode }, size, probe, peerChanges);
    rows.push(programRow(size, 'peer', theirs));
  }
  if (hasProgram('nft', '--version')) {
    removeRules();
    const { seconds, cpu } = loadRuleset(upstreamRuleset(size, 'tcp'));
    rows.push({ ...sizeCell(size), program: 'nft -f', ...coldCells(seconds, cpu) });
  }
  return rows;
}

/** Each layout in a namespace of its own: none meets the connections that another one left behind. */
function compareLayouts(size: Size): void {
  console.log(`first packets of new flows, ${size.services.toLocaleString('en')} × ${size.endpoints}:`);
  const isKnown = hasProgram('nft', '--version') && size.services <= patientServices;
  for (const layout of layouts) if (isKnown || layout !== 'upstream layout') isolate('flows', size, layout);
}

async function printFlows(size: Size, layout: Layout): Promise<void> {
  if (layout === 'kube-proxy-ts') await programRules(size);
  if (layout === 'upstream layout') loadRuleset(upstreamRuleset(size, 'udp'));
  const { flowsPerSecond, cpuMicros }: FlowFigures = await measureFlows(size);
  console.log(`  ${layout}: ${flowsPerSecond.toFixed(0)} flows/s, ${cpuMicros.toFixed(2)} µs CPU per flow`);
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

async function compareRates(size: Size, probe: Probe): Promise<Row[]> {
  const peer = process.env.KUBE_PROXY_PEER;
  const programs = [['kube-proxy-ts', ownProgram], ...(peer ? [['peer', peer]] : [])] as const;
  const rows: Row[] = [];
  for (const [program, path] of programs) {
    if (!program || !path) continue;
    const figures = await measureRate({ path, mode }, size, probe, rate.perSecond, rate.seconds);
    rows.push({
      ...sizeCell(size),
      program,
      'changes/s': figures.changesPerSecond.toFixed(0),
      'effect p50/p99 (ms)': spreadCell(figures.effect),
      'last change to effect (ms)': figures.backlogMs.toFixed(1),
      'CPU per change own+kernel (ms)': cpuCell(figures.cpuPerChange, 1),
    });
  }
  return rows;
}

if (import.meta.main) await inside(...taskOf<Task>(process.argv));
