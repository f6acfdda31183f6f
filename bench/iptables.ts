/**
 * iptables mode, whole programs over a real kernel, with either kind of iptables: kube-proxy-ts, and beside it the
 * kube-proxy that `KUBE_PROXY_PEER` names. Needs root: everything happens in network namespaces that go away with the
 * benchmark.
 */
import { createServer } from 'node:net';
import { type Flavour, flavourUnavailable, useFlavour } from '../test/iptables/flavours.ts';
import { endpointPort, listenerIP, type Size } from './programs/cluster.ts';
import { measureProgram } from './programs/measure.ts';
import { inNamespace, taskOf } from './programs/namespace.ts';
import { Probe } from './programs/probe.ts';
import { ownProgram } from './programs/program.ts';
import { parseSizes, programRow, type Row } from './programs/table.ts';

const mode = 'iptables';
const defaultSizes = '1000x3,5000x3';
const changes = 25;
/** Beyond this many services the peer would take many minutes. */
const patientServices = 5_000;
const flavours: readonly Flavour[] = ['nft', 'legacy'];

type Task = [flavour: Flavour, size: Size];

/** `sizes` as in `1000x3,5000x3`: services and endpoints of each. */
export async function run({ sizes = defaultSizes }: { readonly sizes?: string } = {}): Promise<void> {
  for (const flavour of flavours) {
    const reason = flavourUnavailable(flavour);
    if (reason) console.log(`iptables-${flavour}: left out, ${reason}`);
    else for (const size of parseSizes(sizes)) inNamespace(import.meta.filename, [flavour, size]);
  }
}

async function inside(flavour: Flavour, size: Size): Promise<void> {
  useFlavour(flavour);
  const listener = createServer((socket) => socket.end()).listen(endpointPort, listenerIP);
  const probe = new Probe();
  try {
    console.log(`iptables-${flavour}`);
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
