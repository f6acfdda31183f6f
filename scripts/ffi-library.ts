import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The files of koffi that are needed at run time. The rest are C++ sources and documents. */
const koffiFiles = [
  'package.json',
  'LICENSE.txt',
  'index.js',
  'index.cjs',
  'src/koffi/index.js',
  'src/koffi/index.cjs',
  'src/koffi/src/static.js',
  'src/koffi/src/static.cjs',
];
const nativeScope = '@koromix';

/**
 * Copies the FFI library with its binary for this platform into `target`, a node_modules directory. Throws when the
 * installation has no binary.
 */
export function copyFFILibrary(nodeModules: string, target: string): void {
  for (const file of koffiFiles) copy(join(nodeModules, 'koffi', file), join(target, 'koffi', file));
  const natives = readdirSync(join(nodeModules, nativeScope)).filter((name) => name.startsWith('koffi-'));
  if (natives.length === 0) throw new Error(`no koffi binary for ${process.platform}-${process.arch}`);
  for (const name of natives) copy(join(nodeModules, nativeScope, name), join(target, nativeScope, name));
}

function copy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(source, target, { recursive: true, dereference: true });
}
