import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Script } from 'node:vm';

/** Modes whose first sync is part of the training; a mode that cannot run here is left out. */
const modes = ['nftables', 'iptables'] as const;

/** Node's modules that cost milliseconds to load, and that a start may not need. */
const lazyModules = ['https', 'tls', 'crypto', 'child_process', 'worker_threads', 'zlib', 'fs/promises'];

/**
 * A plugin for esbuild: loads these modules of Node when one of their exports is first used. Exports whose names are nowhere in
 * `sources` are left out: at a start, a getter is defined for each of the others wherever the module is imported.
 */
export function lazyBuiltins(sources: string): import('esbuild').Plugin {
  return {
    name: 'lazy-builtins',
    setup(build) {
      const words = wordsIn(sources);
      build.onResolve({ filter: /^node:/ }, ({ path }) => {
        const name = path.slice('node:'.length);
        return lazyModules.includes(name) ? { path: name, namespace: 'lazy', sideEffects: false } : null;
      });
      build.onLoad({ filter: /.*/, namespace: 'lazy' }, ({ path }) => ({
        contents: lazyModule(`node:${path}`, words),
        loader: 'js',
      }));
    },
  };
}

function wordsIn(folder: string): Set<string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return new Set(files.flatMap((file) => readFileSync(join(folder, file), 'utf8').match(/\w+/g) ?? []));
}

function lazyModule(name: string, used: ReadonlySet<string>): string {
  const keys = Object.keys(process.getBuiltinModule(name) ?? {}).filter((key) => used.has(key));
  return `for (const key of ${JSON.stringify(keys)}) {
  Object.defineProperty(exports, key, { enumerable: true, get: () => process.getBuiltinModule('${name}')[key] });
}`;
}

/**
 * A plugin for esbuild: loads the binary of koffi that `npm run build` puts beside the bundle. koffi itself reads six files to
 * find it, which takes 8 ms of CPU. Where it is not there, or not for this C library, koffi looks for it.
 */
export function directFFI(): import('esbuild').Plugin {
  return {
    name: 'direct-ffi',
    setup(build) {
      build.onResolve({ filter: /^koffi$/ }, ({ importer }) =>
        importer.endsWith('direct')
          ? { path: 'koffi', external: true }
          : { path: 'direct', namespace: 'direct' },
      );
      build.onLoad({ filter: /.*/, namespace: 'direct' }, () => ({ contents: directModule, loader: 'js' }));
    },
  };
}

const directModule = `const { platform, arch } = process;
const binary = './node_modules/@koromix/koffi-' + platform + '-' + arch + '/' + platform + '_' + arch + '/koffi.node';
function load() {
  try {
    return require(binary);
  } catch {
    return require('koffi').default;
  }
}
module.exports = load();`;

/** The bundle as an expression: a function that gets what a module has, and returns the exports. */
export const wrapper = {
  banner: '(function (require, __filename, __url) { const module = { exports: {} };',
  footer: 'return module.exports; })',
  define: { 'import.meta.url': '__url', 'import.meta.filename': '__filename' },
} as const;

/** The end of a bundle, by which its cache is recognised: V8 itself compares only lengths. */
export function digestLine(bundle: string): string {
  return `\n//${createHash('sha256').update(bundle).digest('hex')}`;
}

/** Writes what V8 has compiled of a bundle so far. */
export function saveCache(directory: string, bundle: string, script: Script): void {
  const digest = bundle.slice(-digestLine('').length).replace('\n//', '');
  const cache = Buffer.concat([Buffer.from(digest), script.createCachedData()]);
  writeFileSync(join(directory, 'kube-proxy.cache'), cache);
}

/**
 * Starts the program in an empty network namespace, lets it sync once in every mode, and writes what V8 compiled meanwhile
 * beside the bundle. Where that cannot be done, since it needs root or user namespaces, writes all functions. Returns which
 * of both it was.
 */
export function writeCodeCache(directory: string): 'called functions' | 'all functions' {
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  for (const mode of modes) {
    const setUp = 'ip link set lo up && exec "$0" "$@"';
    const args = [...asRoot, '--net', 'sh', '-c', setUp, ...command('train.ts', directory, mode)];
    spawnSync('unshare', args, { stdio: 'ignore', timeout: 60_000, killSignal: 'SIGKILL' });
  }
  if (existsSync(join(directory, 'kube-proxy.cache'))) return 'called functions';
  const [node = '', ...args] = command('compile-all.ts', directory);
  execFileSync(node, args, { stdio: 'inherit' });
  return 'all functions';
}

/** V8 compares its flags with those of a cache, so they are the launcher's. */
function command(script: string, ...args: readonly string[]): string[] {
  const flags = ['--max-semi-space-size=2', '--disable-warning=ExperimentalWarning'];
  return [process.execPath, ...flags, join(import.meta.dirname, script), ...args];
}
