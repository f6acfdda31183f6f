import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Where the emulated machine finds the folder that it shares with this one. */
const shared = '/vm-out';

export interface GuestOptions {
  /** The project's folder, the same inside as outside. */
  readonly root: string;
  readonly files: readonly string[];
  readonly pace: number;
  readonly contract: string;
}

/** Where a file's report is found, relative to the shared folder. */
export function reportPath(file: string): string {
  return `reports/${file.replaceAll('/', '+')}.jsonl`;
}

/** The shell script that runs the tests inside: file after file, since one emulated machine is slow enough. */
export function guestScript({ root, files, pace, contract }: GuestOptions): string {
  // An address, since options of Node in the environment end at a space.
  const preload = pathToFileURL(join(root, 'test/vm/stripped-sources.js')).href;
  return [
    `cd ${quoted(root)}`,
    `export KPT_PACE=${pace} KPT_CONTRACT=${contract} NODE_OPTIONS=${quoted(`--import ${preload}`)}`,
    'status=0',
    ...files.map((file) => `${testCommand(file)} || status=1`),
    'exit $status',
    '',
  ].join('\n');
}

function testCommand(file: string): string {
  return [
    'node_modules/.bin/node --test --test-reporter=spec --test-reporter-destination=stdout',
    `--test-reporter=./test/vm/reporter.ts --test-reporter-destination=${quoted(`${shared}/${reportPath(file)}`)}`,
    quoted(file),
  ].join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
