import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fieldReference, flagReference, gateReference } from './configuration.ts';
import { replaceSection } from './markdown.ts';
import { metricReference } from './metrics.ts';
import { performancePlot } from './performance-plot.ts';

const docs = resolve(import.meta.dirname, '../../docs');

/** Generated sections by page. */
const generated = {
  'configuration.md': { fields: fieldReference, flags: flagReference, gates: gateReference },
  'operations.md': { metrics: metricReference },
} satisfies Record<string, Record<string, () => string | Promise<string>>>;

export interface Page {
  readonly path: string;
  readonly present: string;
  readonly wanted: string;
}

/** Returns the generated plot and the pages with generated sections, as they are and as they should be. */
export async function generatedPages(): Promise<Page[]> {
  const svg = join(docs, 'performance.svg');
  const pages: Page[] = [
    {
      path: svg,
      present: existsSync(svg) ? readFileSync(svg, 'utf8') : '',
      wanted: performancePlot(join(docs, 'performance.md')),
    },
  ];
  for (const [name, sections] of Object.entries(generated)) {
    const path = join(docs, name);
    const present = readFileSync(path, 'utf8');
    let wanted = present;
    for (const [section, write] of Object.entries(sections)) {
      wanted = replaceSection(wanted, section, await write());
    }
    pages.push({ path, present, wanted });
  }
  return pages;
}
