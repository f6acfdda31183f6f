/**
 * Measures ipvs mode with a real kernel: kube-proxy-ts and, if set, the peer. Needs root and a kernel with ip_vs;
 * test/vm/vm-run starts an emulated machine with such a kernel.
 */
import { ipvsUnavailable } from '../test/ipvs/on-ipvs-kernel.ts';
import type { Bench } from './part.ts';
import { type Comparison, comparePrograms } from './programs/compare.ts';
import { parseSizes } from './programs/figures.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { sizeText } from './report/measurement.ts';

const defaultSizes = '1000x3,5000x3';
/** Few changes: in an emulated machine the peer takes many seconds for each. */
const changes = 3;

export async function run(bench: Bench): Promise<void> {
  const { sizes = defaultSizes, peer } = bench;
  const reason = await ipvsUnavailable();
  if (reason !== undefined) {
    const environment = peer ? `env KUBE_PROXY_PEER=${peer} ` : '';
    bench.note(
      `left out: ${reason}. In an emulated machine that has it, about ten times slower: \`npm run build && ` +
        `test/vm/vm-run -m ip_vs -t 3000 -- ${environment}npm run bench -- ipvs --sizes ${sizes}\``,
    );
    return;
  }
  for (const size of parseSizes(sizes)) {
    bench.step(sizeText(size));
    const comparison: Comparison = {
      part: 'ipvs',
      topic: 'whole programs',
      mode: 'ipvs',
      size,
      changes,
      ...(peer !== undefined && { peer }),
    };
    bench.record(await inNamespace(import.meta.filename, [comparison]));
  }
}

if (import.meta.main) {
  const [comparison] = taskOf<[Comparison]>(process.argv);
  handBack(await comparePrograms(comparison));
}
