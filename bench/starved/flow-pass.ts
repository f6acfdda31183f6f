import { setTimeout as sleep } from 'node:timers/promises';
import { parseIP } from '../../src/model/ip.ts';
import { type FlowToMake, makeFlows } from '../../test/kernel/flow-maker.ts';
import { type Cluster, endpointPort, listenerIP, nodeIP, serviceIP } from '../programs/cluster.ts';
import { metricsURL } from '../programs/measure.ts';
import type { Program } from '../programs/program.ts';

const total = 50_000;
/** One of this many flows goes to the endpoint that leaves. */
const staleEvery = 50;
const settledMs = 3_000;
/** A page of metrics costs CPU time that the pass then lacks. */
const pollMs = 2_000;
const patienceMs = 120_000;
const metric = 'kubeproxy_conntrack_reconciler_sync_duration_seconds';

/** Removes an endpoint of a Service that has 50,000 UDP flows. Resolves to the mean duration of a pass over them, in ms. */
export async function measureFlowPass(cluster: Cluster, program: Program): Promise<number> {
  const [stays, leaves] = [listenerIP, nodeIP];
  cluster.setDatagramEndpoints([stays, leaves]);
  await sleep(settledMs);
  await makeFlows(flowsTo(serviceIP(cluster.size.services + 1), stays, leaves));
  const before = await passes();
  cluster.setDatagramEndpoints([stays]);
  const end = performance.now() + patienceMs;
  while ((await passes()).count === before.count) {
    if (program.hasEnded || performance.now() > end) throw new Error('no pass over the flows ended in time');
    await sleep(pollMs);
  }
  // A second pass may follow, after a grace for answers.
  await sleep(settledMs);
  const after = await passes();
  return ((after.sum - before.sum) / (after.count - before.count)) * 1000;
}

function* flowsTo(service: string, stays: string, leaves: string): Generator<FlowToMake> {
  const destination = bytesOf(service);
  const answerers = { stays: bytesOf(stays), leaves: bytesOf(leaves) };
  for (let i = 0; i < total; i++) {
    yield {
      client: Uint8Array.of(10, 1, i >> 8, i & 255),
      clientPort: 20_000,
      destination,
      destinationPort: 80,
      answerer: i % staleEvery === 0 ? answerers.leaves : answerers.stays,
      answererPort: endpointPort,
    };
  }
}

function bytesOf(ip: string): Uint8Array {
  const parsed = parseIP(ip);
  if (!parsed) throw new Error(`not an address: ${ip}`);
  return parsed.bytes;
}

async function passes(): Promise<{ readonly sum: number; readonly count: number }> {
  const page = await (await fetch(metricsURL)).text();
  const read = (suffix: string): number =>
    Number(new RegExp(`^${metric}_${suffix}\\{ip_family="IPv4"\\} (\\S+)$`, 'm').exec(page)?.[1] ?? 0);
  return { sum: read('sum'), count: read('count') };
}
