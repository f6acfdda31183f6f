import assert from 'node:assert/strict';
import type { ProgramContext } from '../../src/backends/iptables-families.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { FakeClock } from '../fake-clock.ts';
import { type FakeEnd, FakePrograms } from './fake-programs.ts';

/** A fake machine: programs, files and a log. */
export interface World extends ProgramContext {
  readonly programs: FakePrograms;
  readonly log: { message: string; attributes: unknown }[];
}

/** Makes a fake machine with read-only files. */
export function world(
  answer: (command: string) => FakeEnd | undefined,
  files: Readonly<Record<string, string>> = { '/proc/net/if_inet6': '' },
): World {
  const programs = new FakePrograms(answer);
  const log: World['log'] = [];
  const note = (message: string, attributes?: unknown) => void log.push({ message, attributes });
  return {
    programs,
    log,
    run: programs.run,
    clock: new FakeClock(),
    logger: { ...silentLogger, info: note, error: (_, message, attributes) => note(message, attributes) },
    files: {
      read: (path) => {
        const text = files[path];
        if (text === undefined) throw new Error(`ENOENT ${path}`);
        return text;
      },
      write: () => assert.fail('EROFS'),
    },
  };
}
