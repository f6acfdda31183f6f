/** One run in a network namespace of its own; scripts/soak.ts starts it with its options in KPT_SOAK. */
import { enterNamespace } from '../cluster/lab/namespace.ts';
import { Landscape } from '../contract/landscape.ts';
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
}

const namespace = enterNamespace(import.meta.url);
const task = JSON.parse(process.env.KPT_SOAK ?? '') as SoakTask;
const landscape = await Landscape.build(namespace);
try {
  const print = (line: string) => console.log(line);
  const options = { ...task, mode: prepareMode(task.mode), progress: print, ...(task.verbose && { print }) };
  console.log(reportText(await soak(options, landscape)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  landscape.close();
}
