import { test } from 'node:test';
import { IpvsUnavailableError, openIpvsClient } from '../../src/kernel/ipvs/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace } from '../cluster/lab/namespace.ts';

/** The reason why ipvs mode cannot be tested here; undefined when it can. */
export async function ipvsUnavailable(): Promise<string | undefined> {
  try {
    (await openIpvsClient(await loadLibc(), { clock: systemClock })).close();
    return undefined;
  } catch (error) {
    if (!(error instanceof IpvsUnavailableError)) throw error;
    return 'this kernel has no ip_vs';
  }
}

/** Defines tests in a network namespace of a kernel with IPVS. On other kernels a skipped test gives the reason. */
export async function onIpvsKernel(moduleURL: string, define: () => void): Promise<void> {
  const skip = await ipvsUnavailable();
  if (skip === undefined) inNamespace(moduleURL, define);
  else test('on a real kernel', { skip }, () => {});
}
