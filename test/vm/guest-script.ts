import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Lane } from './lane.ts';

/** Path of the shared folder in the emulated machine. */
const shared = '/vm-out';

export interface GuestOptions {
  /** The project's folder, the same inside as outside. */
  readonly root: string;
  readonly lane: Lane;
  readonly pace: number;
  readonly contract: string;
  readonly seed: string;
}

/** Path of a file's report, relative to the shared folder. */
export function reportPath(file: string): string {
  return `reports/${file.replaceAll('/', '+')}.jsonl`;
}

/** Folders of the project that the machine has a copy of. */
export const copied = ['src', 'test', 'bin', 'dist'] as const;

/** The archive with the copy, relative to the shared folder. */
export const archivePath = 'project.tar';

/**
 * The shell commands that put the copy in the place of the folders. The machine reads files of its own in a tenth of the
 * time that those outside take, and every start of the program looks at all of them.
 */
export function unpackScript(root: string): string {
  const project = '/project';
  return [
    'set -e',
    `mkdir ${project}`,
    `tar -xf ${shared}/${archivePath} -C ${project}`,
    // Older than the sources without types, it would not be used.
    `find ${project}/dist -exec touch {} +`,
    // The program is a bundle and needs nothing preloaded.
    `sed -i '1i unset NODE_OPTIONS' ${project}/bin/launch`,
    ...copied.map((folder) => `mount --bind ${project}/${folder} ${quoted(join(root, folder))}`),
    'set +e',
    '',
  ].join('\n');
}

/** The shell script that runs the tests inside, and prints the result of each file. */
export function guestScript({ root, lane, pace, contract, seed }: GuestOptions): string {
  // A URL without spaces, because a space ends an option in NODE_OPTIONS.
  const preload = pathToFileURL(join(root, 'test/vm/stripped-sources.js')).href;
  return [
    `cd ${quoted(root)}`,
    `export KPT_PACE=${pace} KPT_CONTRACT=${contract} KPT_SEED=${quoted(seed)}`,
    `export NODE_OPTIONS=${quoted(`--import ${preload}`)}`,
    'status=0',
    'run() {',
    '  local file=$1 outcome=passed begin=$SECONDS',
    '  shift',
    // A namespace for each file; otherwise the file would make one itself and start again in it.
    '  export KPT_LAB_NAMESPACE=kpt-$((++files))',
    '  ip netns add $KPT_LAB_NAMESPACE && ip -n $KPT_LAB_NAMESPACE link set lo up',
    '  ip netns exec $KPT_LAB_NAMESPACE "$@" || outcome=failed status=1',
    '  echo "$file: $outcome after $((SECONDS - begin)) s"',
    '}',
    ...lane.map((file) => `run ${quoted(file)} ${testCommand(file)}`),
    'exit $status',
    '',
  ].join('\n');
}

function testCommand(file: string): string {
  const destination = quoted(`${shared}/${reportPath(file)}`);
  return [
    'node_modules/.bin/node --test --import ./test/seed.ts',
    `--test-reporter=./test/vm/reporter.ts --test-reporter-destination=${destination}`,
    quoted(file),
  ].join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
