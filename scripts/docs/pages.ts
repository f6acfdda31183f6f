import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fieldReference, flagReference, gateReference, restartReference } from './configuration.ts';
import { ctlReference } from './ctl.ts';
import { replaceSection } from './markdown.ts';
import { metricReference } from './metrics.ts';
import { performancePlot } from './performance-plot.ts';
import { prometheusRule } from './prometheus-rule.ts';

const docs = resolve(import.meta.dirname, '../../docs');
const monitoring = resolve(import.meta.dirname, '../../deploy/monitoring');

/** Generated sections by page. */
const generated = {
  'configuration.md': {
    restarts: restartReference,
    fields: fieldReference,
    flags: flagReference,
    gates: gateReference,
  },
  'inspection.md': { kubeProxyctl: ctlReference },
  'operations.md': { metrics: metricReference },
} satisfies Record<string, Record<string, () => string | Promise<string>>>;

export interface Page {
  readonly path: string;
  readonly present: string;
  readonly wanted: string;
}

/** Returns the generated files and the pages with generated sections, as they are and as they should be. */
export async function generatedPages(): Promise<Page[]> {
  const rules = readFileSync(join(monitoring, 'prometheus-rules.yaml'), 'utf8');
  const pages: Page[] = [
    wholePage(join(docs, 'performance.svg'), performancePlot(join(docs, 'performance.md'))),
    wholePage(join(monitoring, 'prometheus-rule.yaml'), prometheusRule(rules)),
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

function wholePage(path: string, wanted: string): Page {
  return { path, present: existsSync(path) ? readFileSync(path, 'utf8') : '', wanted };
}
