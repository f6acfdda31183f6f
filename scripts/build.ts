/**
 * Bundles each command into one file under dist/, and the page of kube-proxyctl. koffi is not bundled but copied beside the bundles, with its binary
 * for this platform, so that dist/ runs wherever Node.js is installed. A table beside each bundle maps its lines to the
 * sources, for the positions in log records. The bundles know their version and commit (src/lib/product.ts).
 * With --optional (after an install) a missing esbuild is no failure: the commands then run from their sources.
 */
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { digestLine, directFFI, lazyBuiltins, wrapper, writeCodeCache } from './code-cache/build.ts';
import { copyFFILibrary } from './ffi-library.ts';
import { builtProduct } from './product.ts';

const root = resolve(import.meta.dirname, '..');
const dist = join(root, 'dist');
const commands = {
  'kube-proxyctl': './src/ctl/main.ts',
  // Not a command: the code of userspace mode's threads (src/forwarder/thread.ts).
  'forwarder-worker': './src/forwarder/thread-main.ts',
};
const banner =
  "#!/usr/bin/env node\nimport { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

async function main(): Promise<void> {
  const esbuild = await import('esbuild').catch((error: NodeJS.ErrnoException) => {
    if (process.argv.includes('--optional') && error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  });
  if (!esbuild) return;
  mkdirSync(dist, { recursive: true });
  const built = mkdtempSync(join(dist, '.new-'));
  try {
    await buildInto(built, esbuild);
    putInPlace(built);
  } finally {
    rmSync(built, { recursive: true });
  }
}

async function buildInto(built: string, esbuild: typeof import('esbuild')): Promise<void> {
  const define = { KPT_PRODUCT: JSON.stringify(builtProduct(root)) };
  await buildProxy(built, esbuild, define);
  for (const [command, entry] of Object.entries(commands)) {
    const outfile = join(built, `${command}.js`);
    await esbuild.build({
      stdin: {
        contents: `import { main } from '${entry}';\nawait main(process.argv.slice(2));\n`,
        resolveDir: root,
        sourcefile: `${command}.js`,
      },
      outfile,
      bundle: true,
      platform: 'node',
      target: 'node24',
      format: 'esm',
      external: ['koffi'],
      define,
      sourcemap: 'external',
      banner: { js: banner },
    });
    const text = inASCII(readFileSync(outfile, 'utf8'));
    writeFileSync(outfile, text);
    chmodSync(outfile, 0o755);
    writeLineTable(outfile);
    console.log(`dist/${command}.js  ${(text.length / 1024).toFixed(0)} KiB`);
  }
  cpSync(join(root, 'LICENSE'), join(built, 'LICENSE'));
  await buildPage(built, esbuild);
  // The libraries in the bundles.
  for (const name of ['yaml', 'preact', 'uplot']) {
    cpSync(join(root, 'node_modules', name, 'LICENSE'), join(built, `LICENSE.${name}`));
  }
  writeFileSync(join(built, 'package.json'), `${JSON.stringify({ type: 'module' })}\n`);
  copyFFILibrary(join(root, 'node_modules'), join(built, 'node_modules'));
  const cached = writeCodeCache(built);
  console.log(`dist/kube-proxy.cache  ${cached}`);
}

/**
 * kube-proxy starts on nodes that have little time for it: its bundle is a script that V8 can run with a cache of compiled
 * functions, and `kube-proxy.js` runs it.
 */
async function buildProxy(
  built: string,
  esbuild: typeof import('esbuild'),
  define: Record<string, string>,
): Promise<void> {
  const outfile = join(built, 'kube-proxy.bundle');
  await esbuild.build({
    stdin: {
      contents: "export { main } from './src/main.ts';\n",
      resolveDir: root,
      sourcefile: 'kube-proxy.js',
    },
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // In a script, Node supports `import()` only with a warning.
    supported: { 'dynamic-import': false },
    external: ['koffi'],
    define: { ...define, ...wrapper.define },
    plugins: [lazyBuiltins(join(root, 'src')), directFFI()],
    sourcemap: 'external',
    banner: { js: wrapper.banner },
    footer: { js: wrapper.footer },
  });
  const text = inASCII(readFileSync(outfile, 'utf8')).trimEnd();
  writeFileSync(outfile, text + digestLine(text));
  writeLineTable(outfile);
  const entry = join(built, 'kube-proxy.js');
  await esbuild.build({
    entryPoints: [join(root, 'scripts/code-cache/entry.js')],
    outfile: entry,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
  });
  chmodSync(entry, 0o755);
  console.log(`dist/kube-proxy.bundle  ${(text.length / 1024).toFixed(0)} KiB`);
}

/** The page that `kube-proxyctl ui` serves: page.html, page.js and page.css. */
async function buildPage(built: string, esbuild: typeof import('esbuild')): Promise<void> {
  const { outputFiles } = await esbuild.build({
    stdin: {
      contents:
        "import 'uplot/dist/uPlot.min.css';\nimport './src/ui/page.css';\nimport './src/ui/main.tsx';\n",
      resolveDir: root,
    },
    outfile: join(built, 'page.js'),
    bundle: true,
    minify: true,
    platform: 'browser',
    target: 'es2023',
    format: 'iife',
    // Not that of src/ui/, which extends a file that an image build does not have.
    tsconfigRaw: {},
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'none',
    write: false,
  });
  for (const { path, contents } of outputFiles) {
    writeFileSync(path, contents);
    console.log(`dist/${basename(path)}  ${(contents.length / 1024).toFixed(0)} KiB`);
  }
  cpSync(join(root, 'src/ui/page.html'), join(built, 'page.html'));
}

/** Replaces dist/ file by file, so that a command that starts meanwhile finds a complete bundle. */
function putInPlace(built: string): void {
  const files = filesOf(built);
  for (const file of files) {
    mkdirSync(dirname(join(dist, file)), { recursive: true });
    renameSync(join(built, file), join(dist, file));
  }
  const stale = filesOf(dist).filter((file) => !file.startsWith('.new-') && !files.includes(file));
  for (const file of stale) rmSync(join(dist, file));
}

function filesOf(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  return files.map((entry) => relative(directory, join(entry.parentPath, entry.name)));
}

/**
 * Only comments contain other characters. A single one would make Node.js decode the file character by character and
 * use twice the memory for it.
 */
function inASCII(text: string): string {
  return text.replaceAll(/\P{ASCII}/gu, '?');
}

/** Means "no file" in the table. */
const NOWHERE = 0xffff;

/**
 * Converts the source map to the table that the logger reads (src/obs/bundle-lines.ts): the number of lines (32 bits), for every
 * line the offset at which it begins (32 bits), for every line a file and a line in it (16 bits each), then the names of
 * the files.
 */
function writeLineTable(outfile: string): void {
  const map = JSON.parse(readFileSync(`${outfile}.map`, 'utf8')) as { sources: string[]; mappings: string };
  rmSync(`${outfile}.map`);
  const places: number[] = [];
  let source = 0;
  let line = 0;
  for (const generated of map.mappings.split(';')) {
    let first: [number, number] | undefined;
    for (const segment of generated.split(',').filter(Boolean)) {
      const [, sourceStep = 0, lineStep = 0] = decodeVLQ(segment);
      source += sourceStep;
      line += lineStep;
      first ??= [source, line + 1];
    }
    places.push(...(first ?? [NOWHERE, 0]));
  }
  const files = map.sources.map((path) => basename(path)).join('\n');
  const begins = lineBegins(readFileSync(outfile, 'latin1')).slice(0, places.length / 2);
  const parts = [Uint32Array.of(begins.length), Uint32Array.from(begins), Uint16Array.from(places)];
  const table = Buffer.concat([...parts.map(({ buffer }) => Buffer.from(buffer)), Buffer.from(files)]);
  writeFileSync(outfile.replace(/\.(js|bundle)$/, '.lines'), table);
}

function lineBegins(text: string): number[] {
  const begins = [0];
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) begins.push(end + 1);
  return begins;
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** The numbers of one segment of a source map: base64 digits of five bits, the least significant first. */
function decodeVLQ(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const char of segment) {
    const digit = digits.indexOf(char);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return numbers;
}

await main();
