// Starts a command from its bundle when that is newer than every source, which saves about 10 MB resident, else from
// the sources. Plain JavaScript on purpose: once the compile cache holds the erased sources, Node never loads its
// TypeScript transpiler, which saves another 17 MB (docs/decisions/0002).
import { readdirSync, statSync } from 'node:fs';
import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const entries = { 'kube-proxy': 'src/main.ts', 'kube-proxyctl': 'src/cli/ctl/main.ts' };
/** A start has imported nearly everything after the first, and everything after the second. */
const FLUSH_MS = [500, 3000];

const [program] = process.argv.splice(2, 1);
if (isFresh(`${root}dist/${program}.js`)) {
  await import(`${root}dist/${program}.js`);
} else {
  enableCompileCache(`${root}node_modules/.cache/kube-proxy-ts`);
  const { main } = await import(root + entries[program]);
  // The proxy ends by a signal, which would leave the cache unwritten.
  for (const ms of FLUSH_MS) setTimeout(flushCompileCache, ms).unref();
  await main(process.argv.slice(2));
}

function isFresh(bundle) {
  const built = statSync(bundle, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built === 0) return false;
  const sources = readdirSync(`${root}src`, { recursive: true }).map((name) => `${root}src/${name}`);
  return [...sources, `${root}package-lock.json`].every((file) => statSync(file).mtimeMs <= built);
}
