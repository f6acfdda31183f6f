import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fromDebian } from './programs.ts';

const packages = ['containerd', 'runc', 'containernetworking-plugins'];
const places = ['usr/bin', 'usr/sbin', 'usr/lib/cni'];

/**
 * Unpacks the container runtime and the network plugins of Debian into a folder, unless they are there. Nothing is
 * installed: a container runtime of this machine would start, and change its network. Returns paths by name.
 */
export function unpackDebianPrograms(directory: string): Map<string, string> {
  const root = join(directory, 'root');
  if (!existsSync(root)) {
    mkdirSync(directory, { recursive: true });
    execFileSync('apt-get', ['download', '-qq', ...packages], {
      cwd: directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    execFileSync('sh', ['-c', 'for file in *.deb; do dpkg-deb --extract "$file" root.part; done'], {
      cwd: directory,
    });
    execFileSync('mv', [join(directory, 'root.part'), root]);
  }
  const found = fromDebian.map((name): [string, string | undefined] => [
    name,
    places.map((place) => join(root, place, name)).find((path) => existsSync(path)),
  ]);
  return new Map(
    found.map(([name, path]) => {
      if (path === undefined) throw new Error(`the Debian packages ${packages.join(', ')} have no ${name}`);
      return [name, path];
    }),
  );
}
