import { existsSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { anchorsOf, linksOf } from './markdown.ts';

/** The relative links of pages that lead to no file, or to no heading of it; paths are shown from `root`. */
export function brokenLinks(root: string, pages: readonly string[]): string[] {
  return pages.flatMap((page) => {
    const links = linksOf(readFileSync(page, 'utf8')).filter((link) => !/^[a-z]+:/i.test(link));
    return links.flatMap((link) => {
      const fault = faultOf(page, link);
      return fault === undefined ? [] : `${relative(root, page)}: ${link}: ${fault}`;
    });
  });
}

function faultOf(page: string, link: string): string | undefined {
  const [file = '', anchor] = link.split('#');
  const target = file === '' ? page : resolve(dirname(page), decodeURIComponent(file));
  if (!existsSync(target)) return 'no such file';
  if (anchor === undefined || !target.endsWith('.md')) return undefined;
  return anchorsOf(readFileSync(target, 'utf8')).has(anchor) ? undefined : 'no such heading';
}
