import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { hasProgram } from '../cluster/lab/namespace.ts';

export type Flavour = 'legacy' | 'nft';

/** The reason why a flavour of iptables cannot be tested here; undefined when it can. */
export function flavourUnavailable(flavour: Flavour): string | undefined {
  return hasProgram(`iptables-${flavour}`, '--version') ? undefined : `needs the program iptables-${flavour}`;
}

/**
 * Makes this process and the programs that it starts find one flavour of iptables under the plain names. The directory
 * with the links is removed when the process ends.
 */
export function useFlavour(flavour: Flavour): void {
  const directory = programsOf(flavour);
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  process.env.PATH = `${directory}${delimiter}${process.env.PATH ?? ''}`;
}

/** A new directory with the programs of a flavour under the plain names. */
export function programsOf(flavour: Flavour): string {
  const directory = mkdtempSync(join(tmpdir(), `kpt-${flavour}-`));
  for (const family of ['iptables', 'ip6tables']) {
    for (const suffix of ['', '-save', '-restore']) {
      symlinkSync(`/usr/sbin/${family}-${flavour}${suffix}`, join(directory, `${family}${suffix}`));
    }
  }
  return directory;
}

/**
 * Runs the work with a PATH that leads to no iptables, as in an image without it: only to the programs that the command
 * itself needs.
 */
export async function withoutIptables<T>(work: () => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-no-iptables-'));
  const path = process.env.PATH;
  for (const program of ['sh', 'dirname', 'readlink', 'find'])
    symlinkSync(`/usr/bin/${program}`, join(directory, program));
  process.env.PATH = directory;
  try {
    return await work();
  } finally {
    process.env.PATH = path;
    rmSync(directory, { recursive: true });
  }
}
