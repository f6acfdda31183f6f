import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodes } from './addresses.ts';
import type { Batch } from './batches.ts';
import { readReport, type TestResult } from './report.ts';

export interface SuiteOptions {
  readonly name: string;
  readonly batch: Batch;
  readonly processes: number;
  /** For the report and the output. */
  readonly directory: string;
  readonly kubeconfig: string;
  /** Paths of programs. */
  readonly bin: string;
}

/** Runs a batch of upstream's tests and returns their results. Throws when ginkgo left no report. */
export async function runSuite(options: SuiteOptions): Promise<TestResult[]> {
  const { name, batch, processes, directory, kubeconfig, bin } = options;
  mkdirSync(directory, { recursive: true });
  const ginkgo = [
    `--procs=${batch.isSerial ? 1 : processes}`,
    '--timeout=90m',
    '--no-color',
    '--poll-progress-after=20m',
    `--focus=${batch.focus}`,
    `--skip=${batch.skip}`,
    `--json-report=${name}.json`,
    `--output-dir=${directory}`,
  ];
  const tests = [
    '--provider=skeleton',
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${join(bin, 'kubectl')}`,
    `--num-nodes=${nodes.length}`,
    '--disable-log-dump',
  ];
  const log = join(directory, `${name}.log`);
  await toTheEnd('ginkgo', [...ginkgo, join(bin, 'e2e.test'), '--', ...tests], log);
  try {
    return readReport(readFileSync(join(directory, `${name}.json`), 'utf8'));
  } catch (error) {
    throw new Error(`ginkgo left no report; its output is in ${log}`, { cause: error });
  }
}

/** The exit code says whether tests failed, which the report says too. */
function toTheEnd(command: string, args: readonly string[], log: string): Promise<void> {
  const output = openSync(log, 'w');
  const child = spawn(command, args, { stdio: ['ignore', output, output] });
  closeSync(output);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve());
  });
}
