import type { Landscape } from '../contract/landscape.ts';
import { total } from './descriptors.ts';
import { assertLikeFreshStart } from './fresh-start.ts';
import { faults, operations } from './operations.ts';
import { Run, type Size } from './run.ts';
import { Timeline } from './timeline.ts';

export interface SoakOptions {
  /** `--proxy-mode`. */
  readonly mode: string;
  readonly seed: number;
  /** The run ends after this many operations, or after this time, whatever comes first. */
  readonly operations: number;
  readonly minutes: number;
  readonly print?: (line: string) => void;
  readonly progress?: (line: string) => void;
}

export interface SoakReport {
  readonly operations: number;
  readonly seconds: number;
  readonly ledger: Run['ledger'];
  readonly sizes: readonly Size[];
  readonly fresh: Size;
}

/** After this many operations, the run waits until nothing is left to do, and looks at memory and descriptors. */
const CHECK_EVERY = 25;
const CONVERSATION_PROBABILITY = 0.3;

/**
 * Runs random operations under traffic. Throws when a connection fails without an explanation, when an event does not
 * come, or when the state at the end differs from that of a fresh start.
 */
export async function soak(options: SoakOptions, landscape: Landscape): Promise<SoakReport> {
  const timeline = new Timeline(options.print);
  const run = await Run.open(options.mode, options.seed, landscape, timeline);
  try {
    await run.begin();
    const begun = performance.now();
    const sizes: Size[] = [];
    let done = 0;
    for (; done < options.operations && performance.now() - begun < options.minutes * 60_000; done++) {
      await operate(run, done + 1);
      if ((done + 1) % CHECK_EVERY === 0) {
        await run.quiet();
        sizes.push(run.size());
        options.progress?.(progressText(run, done + 1, sizes.at(-1)));
      }
      throwUnexplained(run);
    }
    run.ledger.operation = `the end after ${done} operations`;
    await run.stopTraffic();
    await run.quiet();
    sizes.push(run.size());
    const fresh = await assertLikeFreshStart(run, done);
    throwUnexplained(run);
    return {
      operations: done,
      seconds: (performance.now() - begun) / 1000,
      ledger: run.ledger,
      sizes,
      fresh,
    };
  } catch (error) {
    const where = `seed ${options.seed}, mode ${options.mode}, ${run.ledger.operation}`;
    throw new Error(`${where}: ${error instanceof Error ? error.message : error}`, { cause: error });
  } finally {
    await run.close();
  }
}

async function operate(run: Run, number: number): Promise<void> {
  const { mode } = run.cluster;
  const { name, run: execute } = run.dice.weighted(
    operations.filter(({ modes }) => modes?.includes(mode) ?? true),
  );
  run.ledger.operation = `operation ${number}, ${name}`;
  run.timeline.note(`operation ${number}: ${name}`);
  const isFault = faults.some((fault) => fault.name === name);
  await (isFault ? run.ledger.during(name, () => execute(run)) : execute(run));
  if (run.dice.isLucky(CONVERSATION_PROBABILITY)) {
    await run.conversations.check();
    await run.conversations.openOne();
  }
}

function throwUnexplained({ ledger, cluster }: Run): void {
  const { unexplained } = ledger;
  if (unexplained.length === 0) return;
  const texts = unexplained.slice(0, 5).map(({ text }) => text);
  throw new Error(
    `${unexplained.length} failures that nothing explains:\n${texts.join('\n')}\nlog of the program:\n` +
      cluster.program.stderr.slice(-4_000),
  );
}

function progressText({ ledger }: Run, done: number, size: Size | undefined): string {
  const explained = [...ledger.explained.values()].reduce((sum, count) => sum + count, 0);
  return (
    `${done} operations, ${ledger.connections} connections, ${explained} failed and explained, ` +
    `${size?.memoryMB.toFixed(0)} MB, ${size && total(size.descriptors)} descriptors`
  );
}
