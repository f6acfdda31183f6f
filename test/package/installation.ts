import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { run } from '../cluster/lab/namespace.ts';

const root = resolve(import.meta.dirname, '../..');

/** The package as `npm pack` makes it, installed into an empty directory in the ways that npm has. */
export class Installation {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Packs and installs, with npm's cache. The installation is removed when this process ends. */
  static make(): Installation {
    const installation = new Installation(mkdtempSync(join(tmpdir(), 'kpt-package-')));
    const { directory, local, global } = installation;
    process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
    run('npm', '--prefix', root, 'pack', root, '--silent', '--pack-destination', directory);
    mkdirSync(local);
    const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    run('npm', '--prefix', local, 'install', ...options, installation.tarball);
    run('npm', '--prefix', global, 'install', '--global', ...options, installation.tarball);
    run('chmod', '-R', 'a+rX', directory);
    return installation;
  }

  get tarball(): string {
    const name = readdirSync(this.directory).find((file) => file.endsWith('.tgz'));
    if (name === undefined) throw new Error(`npm pack left nothing in ${this.directory}`);
    return join(this.directory, name);
  }

  /** Installed as a dependency. */
  get local(): string {
    return join(this.directory, 'local');
  }

  /** Installed as a program of the machine. */
  get global(): string {
    return join(this.directory, 'global');
  }

  get examples(): string {
    return join(this.local, 'node_modules/kube-proxy-ts/examples/shop');
  }

  /** The paths in the tarball. */
  packed(): string[] {
    const paths = run('tar', '--list', '--file', this.tarball).trim().split('\n');
    return paths.map((path) => path.replace(/^package\//, '')).sort();
  }
}
