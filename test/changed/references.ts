import { posix } from 'node:path';

const patterns = [
  // `import … from '…'` and `export … from '…'`, except those that are erased with the types.
  /\b(?:import|export)\s+(?!type\b)[^'";]*?\bfrom\s*'(\.[^']+)'/g,
  // `import '…'` and `import('…')`.
  /\bimport\s*\(?\s*'(\.[^']+)'/g,
  // Workers, scripts and recorded data. Of a template, only the text before the first `${` counts.
  /\bnew URL\(\s*['`]([^'`$]+)[^'`]*['`],\s*import\.meta\.url/g,
  /\bimport\.meta\.dirname,\s*['`]([^'`$]+)/g,
];

/**
 * Returns the files and folders that a source file names by their place relative to itself, as paths of the project. A
 * path stands for everything that begins with it. The project's own folder is left out.
 */
export function referencesOf(file: string, text: string): string[] {
  const found = patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, path = '']) => path));
  const places = found.map((path) => posix.join(posix.dirname(file), path)).filter(isInside);
  return [...new Set(places)].sort();
}

function isInside(place: string): boolean {
  return place !== '.' && place !== './' && !place.startsWith('..');
}
