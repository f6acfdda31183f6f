/**
 * Loaded before every test file: seeds all random values with `KPT_SEED`, so that a run can be repeated. Without it,
 * every run has another seed.
 */
import fc from 'fast-check';

export const seed = Number(process.env.KPT_SEED ?? Math.floor(Math.random() * 2 ** 31));

fc.configureGlobal({ seed });
