/**
 * Preloaded into every Node of the emulated machine: the sources there are without types, so Node need not strip them.
 * To strip them there takes longer than to run them.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const root = new URL('../../', import.meta.url).href;

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(root) || !url.endsWith('.ts')) return nextLoad(url, context);
    return { format: 'module', source: readFileSync(new URL(url), 'utf8'), shortCircuit: true };
  },
});
