/** How many times a function of average length runs before an optimizing compiler of V8 takes it up. */
type Thresholds = Readonly<Record<'maglev' | 'turbofan', number>>;

/** V8's own. */
const usual: Thresholds = { maglev: 400, turbofan: 10_000 };
/**
 * With 1,000 Services, most functions of a start run 1,000 to 3,000 times. To optimize them costs more CPU time than their
 * faster code saves (docs/decisions/0002).
 */
const atStart: Thresholds = { maglev: 4_000, turbofan: 30_000 };

/**
 * Makes V8 optimize only functions that run very often, until `optimizeAsUsual`. In that time Node cannot use its
 * precompiled modules, and compiles each one that it loads.
 */
export function optimizeLess(): void {
  apply(atStart);
}

export function optimizeAsUsual(): void {
  apply(usual);
}

function apply(thresholds: Thresholds): void {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  for (const [compiler, count] of Object.entries(thresholds)) {
    setFlagsFromString(`--invocation-count-for-${compiler}=${count}`);
  }
}
