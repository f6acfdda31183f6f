import { createServer } from 'node:net';
import { endpointPort, listenerIP, type Mode, type Size } from './cluster.ts';
import { measureProgram } from './measure.ts';
import { Probe } from './probe.ts';
import { ownProgram } from './program.ts';
import { programRow } from './table.ts';

/** Beyond this many services the peer would take many minutes. */
const patientServices = 5_000;

/** Prints what kube-proxy-ts, and the kube-proxy that `KUBE_PROXY_PEER` names, take in one mode at one size. */
export async function comparePrograms(mode: Mode, size: Size, changes: number): Promise<void> {
  const listener = createServer((socket) => socket.end()).listen(endpointPort, listenerIP);
  const probe = new Probe();
  const rowOf = async (program: string, path: string) =>
    programRow(size, program, await measureProgram({ path, mode }, size, probe, changes));
  try {
    const peer = process.env.KUBE_PROXY_PEER;
    const rows = [await rowOf('kube-proxy-ts', ownProgram)];
    if (peer && size.services <= patientServices) rows.push(await rowOf('peer', peer));
    console.table(rows);
  } finally {
    await probe.close();
    listener.close();
  }
}
