import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { ImageSettings } from '../../../scripts/image/rootfs.ts';

/** A layer of an image: a tar file. */
export interface Layer {
  readonly file: string;
  readonly digest: string;
}

export interface ImageDescription extends ImageSettings {
  /** Full names, with tags. */
  readonly names: readonly string[];
  /** Arguments for the entry point, or the command if there is none. */
  readonly command?: readonly string[];
  /** From the bottom up. */
  readonly layers: readonly Layer[];
}

/** Packs the files of a directory, with their owners and modes, as a layer. */
export function packLayer(directory: string, file: string): Layer {
  execFileSync('tar', ['--create', '--numeric-owner', `--file=${file}`, `--directory=${directory}`, '.']);
  return { file, digest: digestOf(file) };
}

/** Writes an archive as `docker save` does, which `ctr images import` reads. */
export function writeArchive(
  file: string,
  { names, layers, entrypoint, command = [], env }: ImageDescription,
): void {
  const directory = mkdtempSync(join(dirname(file), '.archive-'));
  const config = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      Env: Object.entries({ PATH: debianPath, ...env }).map(([name, value]) => `${name}=${value}`),
      Entrypoint: entrypoint,
      Cmd: command,
      WorkingDir: '/',
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => `sha256:${digest}`) },
    history: layers.map(() => ({})),
  });
  const configName = `${createHash('sha256').update(config).digest('hex')}.json`;
  const manifest = [{ Config: configName, RepoTags: names, Layers: layers.map((_, i) => `${i}.tar`) }];
  try {
    for (const [i, layer] of layers.entries()) copyFileSync(layer.file, join(directory, `${i}.tar`));
    writeFileSync(join(directory, configName), config);
    writeFileSync(join(directory, 'manifest.json'), JSON.stringify(manifest));
    execFileSync('tar', ['--create', `--file=${file}.part`, `--directory=${directory}`, '.']);
    renameSync(`${file}.part`, file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Names of the images in an archive that `docker save` or an OCI tool wrote. Empty when there are none. */
export function readArchiveNames(file: string): string[] {
  const member = (name: string): string => {
    const { status, stdout } = spawnSync('tar', ['--extract', '--to-stdout', `--file=${file}`, name], {
      encoding: 'utf8',
    });
    return status === 0 ? stdout : '';
  };
  const saved = member('manifest.json') || member('./manifest.json');
  if (saved !== '') {
    const manifest = JSON.parse(saved) as { RepoTags?: string[] | null }[];
    return manifest.flatMap(({ RepoTags }) => RepoTags ?? []);
  }
  const index = JSON.parse(member('index.json') || '{}') as {
    manifests?: { annotations?: Record<string, string> }[];
  };
  return (index.manifests ?? []).flatMap(
    ({ annotations }) => annotations?.['io.containerd.image.name'] ?? [],
  );
}

const debianPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function digestOf(file: string): string {
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(1 << 20);
  const fd = openSync(file, 'r');
  try {
    for (let length = readSync(fd, buffer); length > 0; length = readSync(fd, buffer))
      hash.update(buffer.subarray(0, length));
  } finally {
    closeSync(fd);
  }
  return hash.digest('hex');
}
