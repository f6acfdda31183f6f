/** `compile-all.ts DIRECTORY`: writes all functions of the bundle in DIRECTORY to its cache. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { saveCache } from './build.ts';

const [directory = ''] = process.argv.slice(2);
const bundle = readFileSync(join(directory, 'kube-proxy.bundle'), 'latin1');
// V8 compares this setting with that of a cache, so it is set back before it is written.
setFlagsFromString('--no-lazy');
const script = new Script(bundle, { filename: join(directory, 'kube-proxy.js') });
setFlagsFromString('--lazy');
saveCache(directory, bundle, script);
