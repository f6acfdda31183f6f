import type { ReportLine, TestLine } from './report.ts';

/** An event that `node --test` passes to a reporter. */
export type RunnerEvent = { readonly type: string; readonly data?: unknown };

interface TestData {
  readonly name: string;
  readonly nesting: number;
  readonly skip?: string | boolean;
  readonly details: {
    readonly duration_ms: number;
    readonly type?: string;
    readonly error?: Error & { readonly cause?: unknown; readonly failureType?: string };
  };
}

/**
 * A reporter for `node --test` that writes one line of JSON for every test and one at the end. A report without the last
 * line is incomplete.
 */
export default async function* report(events: AsyncIterable<RunnerEvent>): AsyncGenerator<string> {
  const titles: string[] = [];
  for await (const event of events) {
    const line = lineOf(event, titles);
    if (line) yield `${JSON.stringify(line)}\n`;
  }
}

function lineOf({ type, data }: RunnerEvent, titles: string[]): ReportLine | undefined {
  switch (type) {
    case 'test:start': {
      const { nesting, name } = data as TestData;
      titles.splice(nesting, Infinity, name);
      return undefined;
    }
    case 'test:pass':
    case 'test:fail':
      return testLine(type === 'test:pass', data as TestData, titles);
    case 'test:summary': {
      const { file, success, counts } = data as {
        file?: string;
        success: boolean;
        counts: { tests: number };
      };
      return file === undefined ? { kind: 'end', success, tests: counts.tests } : undefined;
    }
    default:
      return undefined;
  }
}

/** Suites count only when they fail themselves, for example in a hook. */
function testLine(passed: boolean, data: TestData, titles: readonly string[]): TestLine | undefined {
  const { name, nesting, skip, details } = data;
  const { error, type, duration_ms: ms } = details;
  if (type === 'suite' && (passed || error?.failureType === 'subtestsFailed')) return undefined;
  const common = { kind: 'test', titles: [...titles.slice(0, nesting), name], ms: Math.round(ms) } as const;
  if (!passed) return { ...common, outcome: 'failed', detail: describe(error?.cause ?? error) };
  if (skip === undefined || skip === false) return { ...common, outcome: 'passed' };
  return { ...common, outcome: 'skipped', ...(typeof skip === 'string' && { detail: skip }) };
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}
