import { test } from 'node:test';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { Landscape } from '../contract/landscape.ts';
import { seed } from '../seed.ts';
import { prepareMode, type SoakMode } from './modes.ts';
import { reportText } from './report.ts';
import { soak } from './soak.ts';

/** A run of `npm test` ends after this many operations, or after this time and the operation under way. */
const OPERATIONS = 60;
const MINUTES = paced(0.3);

/** Defines a short run in a mode, which follows from KPT_SEED. `unavailable` is the reason why it cannot be run here. */
export function runShortSoak(mode: SoakMode, module: string, unavailable?: string): void {
  const skip = labUnavailable() ?? unavailable;
  const namespace = skip === undefined ? enterNamespace(module) : '';
  test(`random changes and faults in ${mode} mode fail no connection without an explanation`, {
    skip: skip ?? false,
  }, async (t) => {
    const landscape = await Landscape.build(namespace);
    try {
      const options = { mode: prepareMode(mode), seed, operations: OPERATIONS, minutes: MINUTES };
      t.diagnostic(`KPT_SEED=${seed}\n${reportText(await soak(options, landscape))}`);
    } finally {
      landscape.close();
    }
  });
}
