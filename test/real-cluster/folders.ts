import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folders of one run. */
export interface Folders {
  /** Links to all programs, so that one PATH finds them. */
  readonly bin: string;
  /** Image archives for the nodes; kept between runs. */
  readonly images: string;
  /** Packages that are unpacked and not installed; kept between runs. */
  readonly debian: string;
  /** Keys, logs, and the state of the nodes; removed at the end. */
  readonly state: string;
  /** Reports of the tests, and logs of what failed. */
  readonly results: string;
}

/** The state of a run carries the number of its process, so that a later run can tell whether it still runs. */
export function makeFolders(work: string, run: number): Folders {
  const folders = {
    bin: join(work, `run-${run}/bin`),
    images: join(work, 'images'),
    debian: join(work, 'debian'),
    state: join(work, `run-${run}`),
    results: join(work, 'results'),
  };
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true });
  return folders;
}
