/**
 * Preloaded into every Node of the emulated machine: gives the sources as they are without their types, which were
 * stripped before. To strip them there takes longer than to run them.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const root = new URL('../../', import.meta.url).href;
const stripped = 'file:///vm-out/stripped/';

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(root) || !url.endsWith('.ts')) return nextLoad(url, context);
    const source = readFileSync(new URL(stripped + url.slice(root.length)), 'utf8');
    return { format: 'module', source, shortCircuit: true };
  },
});
