#!/usr/bin/env node
// Runs the bundle beside this file, with functions that V8 compiled when the bundle was built (docs/decisions/0002).
import { endOnSignals } from '../../src/app/end-on-signals.ts';

endOnSignals();
// An import would evaluate all exports of these modules, among them lazy ones that load streams.
const { readFileSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { Script } = process.getBuiltinModule('node:vm');
const filename = import.meta.filename;
const path = filename.slice(0, -'.js'.length);
const source = readFileSync(`${path}.bundle`, 'latin1');
const script = new Script(source, { filename, cachedData: cachedData() });
const { main } = script.runInThisContext()(createRequire(filename), filename, import.meta.url);
await main(process.argv.slice(2));

/** Without a cache, or with one of another bundle or Node, V8 compiles functions when they are first called. */
function cachedData() {
  try {
    const cache = readFileSync(`${path}.cache`);
    const digest = /[0-9a-f]+$/.exec(source.slice(-100))[0];
    if (cache.latin1Slice(0, digest.length) === digest) return cache.subarray(digest.length);
  } catch {
    // It is not there.
  }
  return undefined;
}
