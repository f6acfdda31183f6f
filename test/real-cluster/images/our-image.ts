import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { imageStages, RootFileSystems, settingsOf } from '../../../scripts/image/rootfs.ts';
import { commitOf } from '../../../scripts/product.ts';
import { packLayer, writeArchive } from './archive.ts';

const project = resolve(import.meta.dirname, '../../..');

/** The name of our image in the nodes. */
export const ourImage = 'kube-proxy-ts:test';

/** The Dockerfile and the files that its steps copy, without scripts that no image needs. */
const inputs = [
  'Dockerfile',
  'LICENSE',
  'package.json',
  'package-lock.json',
  '.npmrc',
  'scripts',
  ':(exclude)scripts/test*',
  'src',
  'test/cluster',
  'deploy/image',
];

export interface OurImage {
  readonly file: string;
  /** The commit that the program in it tells. */
  readonly commit: string;
}

/** Makes the archive of our image by the steps of the Dockerfile, or takes that of an earlier run with the same sources. */
export function makeOurImage(directory: string): OurImage {
  const file = join(directory, 'kube-proxy-ts.tar');
  const mark = `${file}.commit`;
  const made = existsSync(file) && existsSync(mark) ? readFileSync(mark, 'utf8') : undefined;
  if (made !== undefined && hasSameSources(made)) return { file, commit: made };
  const commit = commitOf(project) ?? 'unknown';
  console.log(`making our image from commit ${commit}`);
  const systems = new RootFileSystems();
  try {
    const stage = imageStages().find(({ name }) => name === 'full');
    if (!stage) throw new Error('the Dockerfile has no stage full');
    const layer = packLayer(systems.make('full'), join(directory, 'kube-proxy-ts.layer'));
    writeArchive(file, { names: [ourImage], layers: [layer], ...settingsOf(stage) });
    writeFileSync(mark, commit);
  } finally {
    systems.remove();
  }
  return { file, commit };
}

/** Whether the files that make the image are now as they were in a commit. */
function hasSameSources(commit: string): boolean {
  if (!/^[0-9a-f]+$/.test(commit)) return false;
  const { status } = spawnSync('git', ['-C', project, 'diff', '--quiet', commit, '--', ...inputs]);
  return status === 0;
}
