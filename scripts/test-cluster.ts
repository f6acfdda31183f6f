/**
 * `npm run test:cluster`: upstream's end-to-end tests in a real cluster of three nodes on this machine
 * (test/real-cluster/README.md). The exit code is 1 when a test failed, 2 when it could not run.
 */
import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../src/lib/thrown.ts';
import { type Arguments, helpText, memory, readArguments } from '../test/real-cluster/arguments.ts';
import { unpackDebianPrograms } from '../test/real-cluster/debian-programs.ts';
import { type Folders, makeFolders } from '../test/real-cluster/folders.ts';
import { makeOurImage } from '../test/real-cluster/images/our-image.ts';
import { imageNamed, podTools, testImages } from '../test/real-cluster/images/test-images.ts';
import type { Order } from '../test/real-cluster/inside.ts';
import { cgroupOf, prepareMachine, removeAbandoned, removeTraces } from '../test/real-cluster/leftovers.ts';
import { runInside } from '../test/real-cluster/outside.ts';
import { type Found, findPrograms, fromDebian, missingPrograms } from '../test/real-cluster/programs.ts';
import { installMissing } from './debian-packages.ts';

const tools = { ...podTools, ip: 'iproute2', openssl: 'openssl', unshare: 'util-linux', sysctl: 'procps' };

async function main(argv: readonly string[]): Promise<number> {
  const options = readArguments(argv);
  if (options.help) {
    console.log(helpText);
    return 0;
  }
  const found = lookFor(options);
  if (process.getuid?.() !== 0) throw new Error('this needs root');
  installMissing(tools);
  removeAbandoned(options.work);
  const folders = makeFolders(options.work, process.pid);
  // Temporary files go with the state when the command is killed.
  process.env.TMPDIR = folders.state;
  try {
    linkPrograms(found, folders);
    const ours = makeOurImage(folders.images);
    const images = [...testImages(found, folders.images, needsUpstream(options)), ours.file];
    prepareMachine(process.pid, folders.state);
    return await runInside(orderOf(options, found, folders, { images, commit: ours.commit }));
  } finally {
    removeTraces(process.pid, folders.state);
  }
}

/** Throws an error that says what is missing, and where to get it. */
function lookFor(options: Arguments): Found {
  const { binaries } = options;
  const isThere = binaries !== undefined && existsSync(binaries);
  const found: Found = isThere ? findPrograms(binaries) : { programs: new Map(), archives: new Map() };
  const missing = missingPrograms(found, needsUpstream(options));
  if (missing.length === 0) return found;
  const where = binaries === undefined ? 'give a folder with --binaries DIR' : `missing in ${binaries}`;
  throw new Error(
    [
      `${where}; programs that belong there, and where to get them:`,
      ...missing,
      'Unpack the archives in the folder; programs are found at any depth of theirs.',
    ].join('\n'),
  );
}

/** Whether upstream's proxy takes part. */
function needsUpstream({ proxy, batches }: Arguments): boolean {
  return proxy === 'upstream' || batches.includes('migration') || batches.includes(memory);
}

/** One folder for the PATH. What the user has not brought comes from Debian. */
function linkPrograms({ programs }: Found, folders: Folders): void {
  const all = new Map(programs);
  if (fromDebian.some((name) => !all.has(name))) {
    for (const [name, path] of unpackDebianPrograms(folders.debian)) if (!all.has(name)) all.set(name, path);
  }
  for (const [name, path] of all) symlinkSync(path, join(folders.bin, name));
}

function orderOf(
  options: Arguments,
  found: Found,
  folders: Folders,
  made: Pick<Order, 'images' | 'commit'>,
): Order {
  return {
    options,
    folders,
    ...made,
    pauseImage: imageNamed(found, 'pause'),
    agnhostImage: imageNamed(found, 'agnhost'),
    cgroup: cgroupOf(process.pid),
  };
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`cluster: ${messageOf(error)}`);
  process.exitCode = 2;
}
