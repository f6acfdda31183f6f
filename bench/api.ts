/**
 * Measures what a node costs the API server, and what a start and changes cost the program: bytes, connections and CPU
 * time with kube-proxy-ts and, if set, the peer on several nodes; then with many nodes that only watch. The API server is
 * kube-apiserver if `KUBE_APISERVER` and `ETCD` name the programs, else the test API server. Needs root. Everything
 * happens in network namespaces, which are removed at the end.
 */
import { WrittenCluster } from './api/cluster.ts';
import { type Load, type ManyCosts, measureMany, type StormCosts } from './api/many.ts';
import { measureBaseline, measureOnNodes, type NodeCosts, nodeName, updates } from './api/programs.ts';
import { type ServerProcess, startServer } from './api/server.ts';
import type { Bench } from './part.ts';
import type { Size } from './programs/cluster.ts';
import { parseSizes } from './programs/figures.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { ownProgram } from './programs/program.ts';
import { type Measurement, measurements, type Subject, sizeText } from './report/measurement.ts';

const part = 'api';
const own = 'kube-proxy-ts';
const defaultSizes = '1000x3,10000x10';
/** Up to so many services, more nodes run a program at the same time, and each program is measured twice. */
const fewServices = 2000;
const withFewServices = { nodes: 10, rounds: 2 };
const withManyServices = { nodes: 2, rounds: 1 };
/** Nodes that only watch. Two cores bear no more: each list and each update goes to each node. */
const loads: readonly Load[] = [
  { nodes: 100, size: { services: 1000, endpoints: 3 }, updates: 1000, updatesPerSecond: 100 },
  { nodes: 500, size: { services: 200, endpoints: 3 }, updates: 200, updatesPerSecond: 20 },
];

type Task =
  | { readonly kind: 'programs'; readonly size: Size; readonly peer: string | null }
  | { readonly kind: 'many'; readonly load: Load };

export async function run({ sizes, peer, step, note, record }: Bench): Promise<void> {
  const isReal = process.env.KUBE_APISERVER && process.env.ETCD;
  note(`The API server is ${isReal ? 'kube-apiserver' : testServerNote}.`);
  const measure = async (task: Task) => record(await inNamespace(import.meta.filename, [task]));
  for (const size of parseSizes(sizes ?? defaultSizes)) {
    step(`a start and ${updates} changes, ${sizeText(size)}`);
    await measure({ kind: 'programs', size, peer: peer ?? null });
  }
  if (sizes !== undefined) return;
  for (const load of loads) {
    step(`${load.nodes} nodes that only watch`);
    await measure({ kind: 'many', load });
  }
}

const testServerNote =
  'that of the tests, whose CPU time says nothing about a real one; KUBE_APISERVER and ETCD name real programs';

async function inside(task: Task): Promise<Measurement[]> {
  const server = await startServer();
  try {
    const cluster = new WrittenCluster(server.client, task.kind === 'many' ? task.load.size : task.size);
    await cluster.fill();
    if (task.kind === 'many') return manyFigures(task.load, await measureMany(task.load, server, cluster));
    return await measurePrograms(server, cluster, task.size, task.peer);
  } finally {
    await server.close();
  }
}

async function measurePrograms(
  server: ServerProcess,
  cluster: WrittenCluster,
  size: Size,
  peer: string | null,
): Promise<Measurement[]> {
  const { nodes, rounds } = size.services <= fewServices ? withFewServices : withManyServices;
  for (let i = 1; i <= nodes; i++) await cluster.addNode(nodeName(`10.255.1.${i}`), `10.255.1.${i}`);
  const programs = { [own]: ownProgram, ...(peer && { peer }) };
  const figures: Measurement[] = [];
  for (let round = 1; round <= rounds; round++) {
    const baseline = await measureBaseline(server, cluster);
    for (const [name, path] of Object.entries(programs)) {
      const { start, updates: changes } = await measureOnNodes(path, nodes, server, cluster, baseline);
      const program = rounds === 1 ? name : `${name}, round ${round}`;
      figures.push(...nodeFigures({ part, topic: 'a start, per node', program, size }, start));
      figures.push(
        ...nodeFigures({ part, topic: `${updates} changes of slices, per node`, program, size }, changes),
      );
    }
  }
  return figures;
}

function nodeFigures(subject: Subject, costs: NodeCosts): Measurement[] {
  return measurements(subject, {
    received: [costs.bytes / 1000, 'kB'],
    connections: [costs.connections, ''],
    "API server's CPU": [costs.serverCpu, 'ms'],
    "program's CPU": [costs.ownCpu, 'ms'],
    peak: [costs.peakMB, 'MB'],
  });
}

function manyFigures(load: Load, { start, cut, restart, update, residentMB }: ManyCosts): Measurement[] {
  const { nodes, size } = load;
  const subject = { part, program: `${nodes} nodes`, size };
  return [
    ...stormFigures(load, 'all start within 10 s', start),
    ...stormFigures(load, 'all connections break', cut),
    ...(restart ? stormFigures(load, 'the API server restarts', restart) : []),
    ...measurements(
      { ...subject, topic: 'an update, for one of many nodes' },
      {
        received: [update.bytes, 'bytes'],
        "API server's CPU": [update.serverCpuMs * 1000, 'µs'],
        "node's CPU": [update.ownCpuMs * 1000, 'µs'],
        'memory of a node': [residentMB / nodes, 'MB'],
      },
    ),
  ];
}

function stormFigures({ nodes, size }: Load, topic: string, storm: StormCosts): Measurement[] {
  return measurements(
    { part, topic, program: `${nodes} nodes`, size },
    {
      'until all watch': [storm.seconds, 's'],
      lists: [storm.lists, ''],
      'lists of one node at most': [storm.mostListsOfANode, ''],
      'lists in one second at most': [storm.mostListsInASecond, ''],
      'resumed watches': [storm.resumed, ''],
      'received per node': [storm.bytes / nodes / 1000, 'kB'],
      "API server's CPU per node": [storm.serverCpuMs / nodes, 'ms'],
    },
  );
}

if (import.meta.main) {
  // So that namespaces are removed.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const [task] = taskOf<[Task]>(process.argv);
  handBack(await inside(task));
}
