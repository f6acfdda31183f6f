// Runs a program from its sources. Plain JavaScript on purpose: once the compile cache holds the erased sources, Node
// never loads its TypeScript transpiler, which saves 17 MB (docs/decisions/0002).
import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const entries = { 'kube-proxy': 'src/main.ts', 'kube-proxyctl': 'src/ctl/main.ts' };
/** A start has imported nearly everything after the first, and everything after the second. */
const FLUSH_MS = [500, 3000];

enableCompileCache(`${root}node_modules/.cache/kube-proxy-ts`);
const [program] = process.argv.splice(2, 1);
if (program === 'kube-proxy') (await import(`${root}src/app/end-on-signals.ts`)).endOnSignals();
const { main } = await import(root + entries[program]);
// The proxy ends by a signal, which would leave the cache unwritten.
for (const ms of FLUSH_MS) setTimeout(flushCompileCache, ms).unref();
await main(process.argv.slice(2));
