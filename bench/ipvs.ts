/**
 * ipvs mode, whole programs over a real kernel: kube-proxy-ts, and beside it the kube-proxy that `KUBE_PROXY_PEER`
 * names. Needs root and a kernel with ip_vs; test/vm/vm-run has one.
 */
import { createServer } from 'node:net';
import { ipvsUnavailable } from '../test/ipvs/on-ipvs-kernel.ts';
import { endpointPort, listenerIP, type Size } from './programs/cluster.ts';
import { measureProgram } from './programs/measure.ts';
import { inNamespace, taskOf } from './programs/namespace.ts';
import { Probe } from './programs/probe.ts';
import { ownProgram } from './programs/program.ts';
import { parseSizes, programRow, type Row } from './programs/table.ts';

const mode = 'ipvs';
const defaultSizes = '1000x3,5000x3';
/** Few: in an emulated machine the peer takes many seconds for each. */
const changes = 3;
/** Beyond this many services the peer would take many minutes. */
const patientServices = 5_000;

type Task = [size: Size];

/** `sizes` as in `1000x3,5000x3`: services and endpoints of each. */
export async function run({ sizes = defaultSizes }: { readonly sizes?: string } = {}): Promise<void> {
  const reason = await ipvsUnavailable();
  if (reason !== undefined) {
    console.log(`left out: ${reason}. In an emulated machine that has it, about ten times slower:`);
    const peer = process.env.KUBE_PROXY_PEER;
    const command = `npm run bench -- ipvs --sizes ${sizes}`;
    console.log('  npm run build &&');
    console.log(
      `  test/vm/vm-run -m ip_vs -t 3000 -- ${peer ? `env KUBE_PROXY_PEER=${peer} ` : ''}${command}`,
    );
    return;
  }
  for (const size of parseSizes(sizes)) inNamespace(import.meta.filename, [size]);
}

async function inside(size: Size): Promise<void> {
  const listener = createServer((socket) => socket.end()).listen(endpointPort, listenerIP);
  const probe = new Probe();
  try {
    console.table(await comparePrograms(size, probe));
  } finally {
    await probe.close();
    listener.close();
  }
}

async function comparePrograms(size: Size, probe: Probe): Promise<Row[]> {
  const peer = process.env.KUBE_PROXY_PEER;
  const rows = [
    programRow(size, 'kube-proxy-ts', await measureProgram({ path: ownProgram, mode }, size, probe, changes)),
  ];
  if (!peer || size.services > patientServices) return rows;
  const theirs = await measureProgram({ path: peer, mode }, size, probe, changes);
  return [...rows, programRow(size, 'peer', theirs)];
}

if (import.meta.main) await inside(...taskOf<Task>(process.argv));
