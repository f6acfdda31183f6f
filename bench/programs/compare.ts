import { createServer } from 'node:net';
import type { Measurement } from '../report/measurement.ts';
import { endpointPort, listenerIP, type Mode, type Size } from './cluster.ts';
import { programFigures } from './figures.ts';
import { measureProgram } from './measure.ts';
import { Probe } from './probe.ts';
import { ownProgram } from './program.ts';

export interface Comparison {
  readonly part: string;
  readonly topic: string;
  readonly mode: Mode;
  readonly size: Size;
  /** Number of changes of each kind. */
  readonly changes: number;
  readonly peer?: string;
}

/** Beyond this many services the peer would take many minutes. */
const patientServices = 5_000;

/** Measures kube-proxy-ts and, if set, the peer in one mode at one size. */
export async function comparePrograms(comparison: Comparison): Promise<Measurement[]> {
  const { part, topic, mode, size, changes, peer } = comparison;
  const listener = createServer((socket) => socket.end()).listen(endpointPort, listenerIP);
  const probe = new Probe();
  const figuresOf = async (program: string, path: string) =>
    programFigures(
      { part, topic, program, size },
      await measureProgram({ path, mode }, size, probe, changes),
    );
  try {
    const own = await figuresOf('kube-proxy-ts', ownProgram);
    const isAsked = peer !== undefined && size.services <= patientServices;
    return isAsked ? [...own, ...(await figuresOf('peer', peer))] : own;
  } finally {
    await probe.close();
    listener.close();
  }
}
