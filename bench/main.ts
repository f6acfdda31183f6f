/**
 * `npm run bench -- [PART…] [--sizes 1000x3,50000x10] [--out DIR]` runs the named parts, or all parts. A size is the
 * number of services and the number of endpoints per service; some parts ignore it. `KUBE_PROXY_PEER` names another
 * kube-proxy to measure in the same run. Figures go to the terminal, and as JSON, Markdown and SVG to the folder. The
 * exit code is 1 when a part failed and 2 for wrong usage. A part that this machine cannot run is no failure.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../src/lib/thrown.ts';
import type { Part } from './part.ts';
import { Progress } from './progress.ts';
import { type Measurement, tabulate } from './report/measurement.ts';
import { type Machine, type PartOutcome, writeReport } from './report/report.ts';
import { textTable } from './report/text.ts';

const parts: Readonly<Record<string, () => Promise<Part>>> = {
  startup: () => import('./startup.ts'),
  state: () => import('./state.ts'),
  nftables: () => import('./nftables.ts'),
  iptables: () => import('./iptables.ts'),
  ipvs: () => import('./ipvs.ts'),
  userspace: () => import('./userspace.ts'),
  fastpath: () => import('./fastpath.ts'),
  observe: () => import('./observe.ts'),
  api: () => import('./api.ts'),
  flood: () => import('./flood.ts'),
  starved: () => import('./starved.ts'),
};

interface Options {
  readonly sizes?: string;
  readonly peer?: string;
}

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      sizes: { type: 'string' },
      out: { type: 'string', default: resolve(import.meta.dirname, 'results') },
    },
  });
  const unknown = positionals.filter((name) => !(name in parts));
  if (unknown.length > 0) {
    console.error(`bench: no such part: ${unknown.join(', ')} (there are: ${Object.keys(parts).join(', ')})`);
    return 2;
  }
  // Before the measurements, so that an unwritable folder does not waste them.
  mkdirSync(values.out, { recursive: true });
  const names = positionals.length > 0 ? positionals : Object.keys(parts);
  const peer = process.env.KUBE_PROXY_PEER;
  const options = { ...(values.sizes && { sizes: values.sizes }), ...(peer && { peer }) };
  const started = new Date();
  const machine = describeMachine();
  const outcomes: PartOutcome[] = [];
  const measured: Measurement[] = [];
  for (const [i, name] of names.entries()) {
    outcomes.push(await runPart(name, new Progress(`[${i + 1}/${names.length}] ${name}`), options, measured));
  }
  const report = { started, machine, parts: outcomes, measurements: measured };
  const files = writeReport({ ...report, ...(peer && { peer: versionOf(peer) }) }, values.out);
  console.log(`\nwritten: ${files.map((file) => relative(process.cwd(), file)).join(' ')}`);
  return outcomes.some(({ error }) => error !== undefined) ? 1 : 0;
}

/** A part that fails keeps its figures so far, and the other parts still run. */
async function runPart(
  part: string,
  progress: Progress,
  options: Options,
  measured: Measurement[],
): Promise<PartOutcome> {
  const begun = performance.now();
  const own: Measurement[] = [];
  const notes: string[] = [];
  let error: string | undefined;
  try {
    const { run } = (await parts[part]?.()) ?? {};
    await run?.({
      ...options,
      step: (what) => progress.show(what),
      note: (text) => notes.push(text),
      record: (figures) => own.push(...figures),
    });
  } catch (cause) {
    error = messageOf(cause);
  }
  const seconds = Math.round((performance.now() - begun) / 1000);
  progress.end(error === undefined ? `done in ${seconds} s` : `failed after ${seconds} s: ${error}`);
  for (const note of notes) console.log(`${part}: ${note}`);
  for (const table of tabulate(own)) console.log(`\n${textTable(table)}`);
  measured.push(...own);
  return { part, seconds, notes, ...(error !== undefined && { error }) };
}

function describeMachine(): Machine {
  return {
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.versions.node,
    load: Math.round((loadavg()[0] ?? 0) * 10) / 10,
  };
}

function versionOf(program: string): string {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  return stdout?.trim() || 'of an unknown version';
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`bench: ${messageOf(error)}`);
  process.exitCode = 2;
}
