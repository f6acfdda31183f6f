import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the page, ready to be sent. */
export interface PageFile {
  readonly type: string;
  readonly content: string;
}

/** By path. */
export type PageFiles = ReadonlyMap<string, PageFile>;

/** Beside the bundle of kube-proxyctl, or where the build puts them when it runs from its sources. */
const places = [import.meta.dirname, join(import.meta.dirname, '../../../dist')];

/**
 * Reads the files that scripts/build.ts makes of src/ui/. `command` is how kube-proxyctl asks the same proxy: the page
 * shows commands that begin with it. Throws when they were not built.
 */
export function readPageFiles(command: string): PageFiles {
  const place = places.find((directory) => existsSync(join(directory, 'page.html')));
  if (place === undefined) throw new Error('the page is not built; run npm run build');
  const read = (name: string) => readFileSync(join(place, name), 'utf8');
  const html = read('page.html').replace('{{command}}', () => escapeAttribute(command));
  return new Map([
    ['/', { type: 'text/html; charset=utf-8', content: html }],
    ['/page.js', { type: 'text/javascript; charset=utf-8', content: read('page.js') }],
    ['/page.css', { type: 'text/css; charset=utf-8', content: read('page.css') }],
  ]);
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
