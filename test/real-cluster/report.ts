/** One test of upstream's suite. */
export interface TestResult {
  readonly name: string;
  readonly state: string;
  readonly seconds: number;
  /** Why it failed or was skipped. */
  readonly reason: string;
}

/** The part of ginkgo's report that is read. */
interface Spec {
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly State: string;
  readonly RunTime: number;
  readonly Failure?: { readonly Message?: string };
}

/** Reads ginkgo's report. Tests that were not chosen are left out; those that skipped themselves are not. */
export function readReport(json: string): TestResult[] {
  const suites = JSON.parse(json) as { readonly SpecReports: readonly Spec[] | null }[];
  return suites
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .filter(({ LeafNodeType }) => LeafNodeType === 'It')
    .map((spec) => ({
      name: [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' '),
      state: spec.State,
      seconds: Math.round(spec.RunTime / 1e9),
      reason: spec.Failure?.Message?.split('\n')[0] ?? '',
    }))
    .filter(({ state, reason }) => state !== 'pending' && !(state === 'skipped' && reason === ''));
}

/** Results of one run, under the name of the proxy and its mode. */
export interface Column {
  readonly title: string;
  readonly results: readonly TestResult[];
}

/** A table in Markdown with a row per test, then totals, then the reasons of what did not pass. */
export function renderTable(columns: readonly Column[]): string {
  const byColumn = columns.map(({ results }) => new Map(results.map((result) => [result.name, result])));
  const names = [...new Set(columns.flatMap(({ results }) => results.map(({ name }) => name)))].sort();
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    row(['test', ...columns.map(({ title }) => title)]),
    row(['---', ...columns.map(() => '---')]),
    ...names.map((name) =>
      row([name.replaceAll('|', '\\|'), ...byColumn.map((each) => cell(each.get(name)))]),
    ),
    '',
    ...columns.map(({ title, results }) => `${title}: ${totals(results)}`),
    ...columns.flatMap(({ title, results }) => reasons(title, results)),
  ].join('\n');
}

/** Whether no test failed. */
export function succeeded(results: readonly TestResult[]): boolean {
  return results.length > 0 && results.every(({ state }) => state === 'passed' || state === 'skipped');
}

function cell(result: TestResult | undefined): string {
  if (!result) return '';
  if (result.state === 'skipped') return 'skip';
  return `${result.state === 'passed' ? 'pass' : result.state.toUpperCase()} ${result.seconds} s`;
}

function totals(results: readonly TestResult[]): string {
  const counts = Map.groupBy(results, ({ state }) => state);
  const minutes = Math.round(results.reduce((sum, { seconds }) => sum + seconds, 0) / 60);
  const words = [...counts].map(([state, each]) => `${each.length} ${state}`);
  return `${words.join(', ')}; ${minutes} minutes of tests`;
}

function reasons(title: string, results: readonly TestResult[]): string[] {
  return results
    .filter(({ state }) => state !== 'passed')
    .map(({ name, state, reason }) => `${title}: ${state}: ${name}: ${reason}`);
}
