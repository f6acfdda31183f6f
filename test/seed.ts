/**
 * Loaded before every test file: what tests leave to chance follows from `KPT_SEED`, so that a run can be had again.
 * Without it every run is another one.
 */
import fc from 'fast-check';

export const seed = Number(process.env.KPT_SEED ?? Math.floor(Math.random() * 2 ** 31));

fc.configureGlobal({ seed });
