/** One run in a network namespace of its own; scripts/soak.ts starts it with its options in KPT_SOAK. */
import { enterNamespace } from '../cluster/lab/namespace.ts';
import { Landscape } from '../contract/landscape.ts';
import { measureCosts } from './costs.ts';
import { prepareMode, type SoakMode } from './modes.ts';
import { reportText } from './report.ts';
import { soak } from './soak.ts';

/** What scripts/soak.ts hands over. */
export interface SoakTask {
  readonly mode: SoakMode;
  readonly seed: number;
  readonly operations: number;
  readonly minutes: number;
  /** Print every event as it happens. */
  readonly verbose: boolean;
  /** Instead of a run: measure what faults cost, with this program or with the one of KUBE_PROXY_PEER. */
  readonly costs: boolean;
}

const namespace = enterNamespace(import.meta.url);
const task = JSON.parse(process.env.KPT_SOAK ?? '') as SoakTask;
const landscape = await Landscape.build(namespace);
try {
  await (task.costs ? printCosts(prepareMode(task.mode)) : printRun(prepareMode(task.mode)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  landscape.close();
}

async function printRun(mode: string): Promise<void> {
  const print = (line: string) => console.log(line);
  const options = { ...task, mode, progress: print, ...(task.verbose && { print }) };
  console.log(reportText(await soak(options, landscape)));
}

async function printCosts(mode: string): Promise<void> {
  const peer = process.env.KUBE_PROXY_PEER;
  console.log(peer ?? 'kube-proxy-ts');
  await measureCosts(mode, landscape, (line) => console.log(`  ${line}`), peer);
}
