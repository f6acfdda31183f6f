/**
 * Measures iptables mode with a real kernel and either kind of iptables: kube-proxy-ts and, if set, the peer. Needs
 * root. Everything happens in network namespaces, which are removed at the end.
 */
import { type Flavour, flavourUnavailable, useFlavour } from '../test/iptables/flavours.ts';
import type { Bench } from './part.ts';
import { type Comparison, comparePrograms } from './programs/compare.ts';
import { parseSizes } from './programs/figures.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { sizeText } from './report/measurement.ts';

const defaultSizes = '1000x3,5000x3';
const changes = 25;
const flavours: readonly Flavour[] = ['nft', 'legacy'];

type Task = [flavour: Flavour, comparison: Comparison];

export async function run(bench: Bench): Promise<void> {
  const sizes = parseSizes(bench.sizes ?? defaultSizes);
  for (const flavour of flavours) {
    const topic = `iptables-${flavour}`;
    const reason = flavourUnavailable(flavour);
    if (reason) bench.note(`${topic} is left out: ${reason}`);
    else
      for (const size of sizes) {
        bench.step(`${topic}, ${sizeText(size)}`);
        const comparison: Comparison = {
          part: 'iptables',
          topic,
          mode: 'iptables',
          size,
          changes,
          ...peerOf(bench),
        };
        bench.record(await inNamespace(import.meta.filename, [flavour, comparison] satisfies Task));
      }
  }
}

function peerOf({ peer }: Bench): Pick<Comparison, 'peer'> {
  return peer === undefined ? {} : { peer };
}

if (import.meta.main) {
  const [flavour, comparison] = taskOf<Task>(process.argv);
  useFlavour(flavour);
  handBack(await comparePrograms(comparison));
}
