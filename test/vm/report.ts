/** One line of a report: a test that ended, or the end of the run. */
export type ReportLine = TestLine | EndLine;

export interface TestLine {
  readonly kind: 'test';
  /** Titles of its suites, then its own. */
  readonly titles: readonly string[];
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly ms: number;
  /** The error of a failure, the reason of a skip. */
  readonly detail?: string;
}

export interface EndLine {
  readonly kind: 'end';
  readonly success: boolean;
  /** Number of tests that ran. */
  readonly tests: number;
}

/** The result of one test file. */
export interface FileResult {
  readonly file: string;
  readonly tests: readonly TestLine[];
  /** Faults of the run as a whole, besides failed tests. */
  readonly problems: readonly string[];
}

/** Reads the report of a file; `text` is undefined when there is none. Never throws: a damaged report is a problem. */
export function readReport(file: string, text: string | undefined): FileResult {
  if (text === undefined || text.trim() === '') return { file, tests: [], problems: ['left no report'] };
  const problems: string[] = [];
  const tests: TestLine[] = [];
  let end: EndLine | undefined;
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const parsed = parseLine(line);
    if (parsed === undefined) problems.push(`has a broken line in its report: ${line.slice(0, 80)}`);
    else if (parsed.kind === 'end') end = parsed;
    else tests.push(parsed);
  }
  return { file, tests, problems: [...problems, ...faultsOf(end, tests)] };
}

function faultsOf(end: EndLine | undefined, tests: readonly TestLine[]): string[] {
  if (!end) return ['did not run to its end'];
  const faults: string[] = [];
  if (tests.length < end.tests) faults.push(`reported ${tests.length} of ${end.tests} tests`);
  if (tests.every(({ outcome }) => outcome === 'skipped')) faults.push('ran no test');
  if (!end.success && tests.every(({ outcome }) => outcome !== 'failed'))
    faults.push('failed outside its tests');
  return faults;
}

function parseLine(line: string): ReportLine | undefined {
  try {
    const parsed = JSON.parse(line) as Partial<TestLine> | Partial<EndLine> | null;
    if (parsed?.kind === 'end') return parsed as EndLine;
    return parsed?.kind === 'test' && Array.isArray(parsed.titles) ? (parsed as TestLine) : undefined;
  } catch {
    return undefined;
  }
}

export function succeeded(results: readonly FileResult[]): boolean {
  return (
    results.length > 0 &&
    results.every(
      ({ tests, problems }) => problems.length === 0 && tests.every(({ outcome }) => outcome !== 'failed'),
    )
  );
}

/** Formats the results for people: failures with errors, the reasons for skips, a line per file, the sum. */
export function render(results: readonly FileResult[]): string {
  const lines: string[] = [];
  for (const { file, tests, problems } of results) {
    for (const { titles, outcome, detail = '' } of tests) {
      if (outcome === 'failed') lines.push(`✖ ${file}: ${titles.join(' › ')}`, indented(detail));
    }
    for (const problem of problems) lines.push(`✖ ${file} ${problem}`);
  }
  for (const { file, tests } of results) {
    for (const [reason, skipped] of Map.groupBy(
      tests.filter(({ outcome }) => outcome === 'skipped'),
      ({ detail }) => detail ?? 'no reason given',
    )) {
      lines.push(`﹣ ${file}: ${skipped.length} skipped: ${reason}`);
    }
  }
  for (const result of results) lines.push(`${result.file}: ${sum([result])}`);
  lines.push(sum(results));
  return lines.join('\n');
}

function sum(results: readonly FileResult[]): string {
  const tests = results.flatMap((result) => result.tests);
  const count = (wanted: TestLine['outcome']): number =>
    tests.filter(({ outcome }) => outcome === wanted).length;
  const failed = count('failed') + results.flatMap(({ problems }) => problems).length;
  return `${count('passed')} passed, ${failed} failed, ${count('skipped')} skipped`;
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '    ');
}
