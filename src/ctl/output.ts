import { type PlainObject, writeYaml } from '../config/write-yaml.ts';
import type { OutputForm } from './flags.ts';

/** A report as people read it, or as programs do. */
export function render(form: OutputForm, report: object, text: () => string): string {
  if (form === 'table') return text();
  // Through JSON in both cases: what is undefined is left out of either.
  const json = JSON.stringify(report, null, 2);
  return form === 'json' ? `${json}\n` : writeYaml(JSON.parse(json) as PlainObject);
}
