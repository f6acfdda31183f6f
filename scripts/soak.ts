/**
 * Runs the program under random changes, faults and traffic (test/soak/README.md). `npm run soak -- --minutes 10 --mode
 * iptables --seed 7`; with `--costs` it measures what faults cost. Needs root; installs missing Debian packages.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { SoakTask } from '../test/soak/main.ts';
import { type SoakMode, soakModes } from '../test/soak/modes.ts';
import { installMissing } from './debian-packages.ts';
import { shareSeed } from './seed.ts';
import { build, root, tools } from './test-files.ts';

const defaultMinutes = 5;

function taskOf(args: readonly string[]): SoakTask {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string' },
      operations: { type: 'string' },
      seed: { type: 'string' },
      mode: { type: 'string', default: 'nftables' },
      verbose: { type: 'boolean', default: false },
      costs: { type: 'boolean', default: false },
    },
  });
  const { mode, verbose, costs, operations, seed } = values;
  if (!soakModes.includes(mode as SoakMode))
    throw new Error(`--mode is one of ${soakModes.join(', ')}, not ${mode}`);
  // With only one limit the other does not apply.
  const minutes = values.minutes ?? (operations === undefined ? defaultMinutes : Infinity);
  return {
    mode: mode as SoakMode,
    verbose,
    costs,
    seed: number('seed', seed ?? shareSeed(root)),
    operations: number('operations', operations ?? Number.MAX_SAFE_INTEGER),
    minutes: Math.min(number('minutes', minutes), Number.MAX_SAFE_INTEGER),
  };
}

function number(name: string, text: string | number): number {
  const value = Number(text);
  if (Number.isNaN(value) || value < 0) throw new Error(`--${name} is a number, not ${JSON.stringify(text)}`);
  return value;
}

async function main(): Promise<number> {
  const task = taskOf(process.argv.slice(2));
  installMissing(tools);
  if (!(await build())) return 1;
  console.log(`mode ${task.mode}, seed ${task.seed}`);
  const env = { ...process.env, KPT_SOAK: JSON.stringify(task) };
  const { status } = spawnSync(process.execPath, [join(root, 'test/soak/main.ts')], {
    stdio: 'inherit',
    env,
  });
  return status ?? 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
