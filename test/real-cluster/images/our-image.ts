import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { imageStages, RootFileSystems, settingsOf } from '../../../scripts/image/rootfs.ts';
import { commitOf } from '../../../scripts/product.ts';
import { packLayer, writeArchive } from './archive.ts';

const project = resolve(import.meta.dirname, '../../..');

/** The name of our image in the nodes. */
export const ourImage = 'kube-proxy-ts:test';

/**
 * Makes the archive of our image, by the steps of the Dockerfile, and returns its file. An archive that was made from
 * the same commit is used again.
 */
export function makeOurImage(directory: string): string {
  const file = join(directory, 'kube-proxy-ts.tar');
  const mark = `${file}.commit`;
  const commit = commitOf(project) ?? 'unknown';
  const isFresh = existsSync(file) && existsSync(mark) && readFileSync(mark, 'utf8') === commit;
  if (isFresh && /^[0-9a-f]+$/.test(commit)) return file;
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
  return file;
}
