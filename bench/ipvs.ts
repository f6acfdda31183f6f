/**
 * ipvs mode, whole programs over a real kernel: kube-proxy-ts, and beside it the kube-proxy that `KUBE_PROXY_PEER`
 * names. Needs root and a kernel with ip_vs; test/vm/vm-run has one.
 */
import { ipvsUnavailable } from '../test/ipvs/on-ipvs-kernel.ts';
import type { Size } from './programs/cluster.ts';
import { comparePrograms } from './programs/compare.ts';
import { inNamespace, taskOf } from './programs/namespace.ts';
import { parseSizes } from './programs/table.ts';

const defaultSizes = '1000x3,5000x3';
/** Few: in an emulated machine the peer takes many seconds for each. */
const changes = 3;

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

if (import.meta.main) {
  const [size] = taskOf<[Size]>(process.argv);
  await comparePrograms('ipvs', size, changes);
}
