/**
 * iptables mode, whole programs over a real kernel, with either kind of iptables: kube-proxy-ts, and beside it the
 * kube-proxy that `KUBE_PROXY_PEER` names. Needs root: everything happens in network namespaces that go away with the
 * benchmark.
 */
import { type Flavour, flavourUnavailable, useFlavour } from '../test/iptables/flavours.ts';
import type { Size } from './programs/cluster.ts';
import { comparePrograms } from './programs/compare.ts';
import { inNamespace, taskOf } from './programs/namespace.ts';
import { parseSizes } from './programs/table.ts';

const defaultSizes = '1000x3,5000x3';
const changes = 25;
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
  console.log(`iptables-${flavour}`);
  await comparePrograms('iptables', size, changes);
}

if (import.meta.main) await inside(...taskOf<Task>(process.argv));
