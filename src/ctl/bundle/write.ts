import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { API_VERSION } from '../../inspect/api.ts';
import { count } from '../../lib/count.ts';
import { redactLines } from '../../lib/redact.ts';
import { messageOf } from '../../lib/thrown.ts';
import { type CommandContext, print } from '../command.ts';
import type { Pages } from '../source.ts';
import { EXIT_ERROR, EXIT_OK, type ExitCode } from '../terminal.ts';
import { clientVersion, programText } from '../version.ts';
import { bundleParts } from './collect.ts';
import { type BundleContents, CONTENTS } from './contents.ts';
import { packEnd, packFile } from './tar.ts';

/**
 * Writes an archive for a support case. Exits with 1 when the proxy does not answer; the archive then has what could be
 * collected without it.
 */
export async function writeBundle(context: CommandContext): Promise<ExitCode> {
  const { options, source, clock } = context;
  const { pages } = source;
  if (!pages) throw new Error('this needs a running kube-proxy');
  const time = new Date(clock.now()).toISOString();
  const stamp = time.replace(/\.\d+Z$/, 'Z').replace(/[-:]/g, '');
  const path = options.file === '' ? `kube-proxy-bundle-${stamp}.tar.gz` : options.file;
  const contents = await (path === '-' ? toStdout(pages, time) : toFile(path, pages, time));
  const { files, missing } = contents;
  if (path !== '-') {
    print(context, contents, () => {
      const lines = missing.map(({ name, reason }) => `  not collected: ${name}: ${reason}\n`);
      return `Wrote ${path} with ${count(files.length, 'file')}.\n${lines.join('')}`;
    });
  }
  return files.some(({ name }) => name === 'status.json') ? EXIT_OK : EXIT_ERROR;
}

/** Only the user may read the file. It gets its name when it is complete. */
async function toFile(path: string, pages: Pages, time: string): Promise<BundleContents> {
  const unfinished = `${path}.part`;
  await rm(unfinished, { force: true });
  const file = await open(unfinished, 'wx', 0o600);
  try {
    const contents = await pack(pages, time, async (bytes) => {
      await file.writeFile(bytes);
    });
    await file.close();
    await rename(unfinished, path);
    return contents;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function toStdout(pages: Pages, time: string): Promise<BundleContents> {
  const stream = createWriteStream('', { fd: 1, autoClose: false });
  return pack(
    pages,
    time,
    (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
  );
}

/** Passes the archive to `write`, file by file. What cannot be collected is listed, and the rest goes on. */
async function pack(
  pages: Pages,
  time: string,
  write: (bytes: Buffer) => Promise<void>,
): Promise<BundleContents> {
  const files: { name: string; bytes: number }[] = [];
  const missing: { name: string; reason: string }[] = [];
  for (const { name, open } of bundleParts(pages)) {
    let packed: Awaited<ReturnType<typeof packFile>>;
    try {
      packed = await packFile(name, redactLines(await open()), Date.parse(time));
    } catch (error) {
      missing.push({ name, reason: messageOf(error) });
      continue;
    }
    await write(packed.bytes);
    files.push({ name, bytes: packed.length });
  }
  const client = programText(clientVersion());
  const contents: BundleContents = { apiVersion: API_VERSION, kind: 'Bundle', time, client, files, missing };
  const list = await packFile(
    CONTENTS,
    redactLines([`${JSON.stringify(contents, null, 2)}\n`]),
    Date.parse(time),
  );
  await write(list.bytes);
  await write(packEnd());
  return contents;
}
