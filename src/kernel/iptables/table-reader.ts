import type { Family } from '../../model/ip.ts';
import type { SystemFiles } from '../system-files.ts';
import type { AnyTable, Commands } from './commands.ts';
import { SavedTable } from './saved-table.ts';

/** The kernel interface of an iptables program: x_tables (legacy) or nf_tables. */
export type Flavour = 'legacy' | 'nft';

/** Reads `iptables v1.8.9 (nf_tables)`. Versions before 1.8 name no flavour and are legacy. */
export function flavourOf(version: string): Flavour {
  return version.includes('(nf_tables)') ? 'nft' : 'legacy';
}

/**
 * The flavour that a file's name tells, which saves running it; undefined when it does not. These files exist since iptables
 * 1.8, which is new enough.
 */
export function flavourOfFile(path: string | undefined): Flavour | undefined {
  if (path?.endsWith('/xtables-nft-multi')) return 'nft';
  return path?.endsWith('/xtables-legacy-multi') ? 'legacy' : undefined;
}

/** Names of the x_tables tables that exist. */
export function legacyTables(files: SystemFiles, family: Family): ReadonlySet<string> {
  try {
    const names = files.read(family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names');
    return new Set(names.split('\n'));
  } catch {
    // Without x_tables the file does not exist, and there are no tables.
    return new Set();
  }
}

/** Reads tables of one family without creating them: a legacy program creates a table that it is asked to dump. */
export class TableReader {
  readonly #commands: Commands;
  readonly #files: SystemFiles;
  readonly #flavour: Flavour;

  private constructor(commands: Commands, files: SystemFiles, flavour: Flavour) {
    this.#commands = commands;
    this.#files = files;
    this.#flavour = flavour;
  }

  /** Rejects when the program is missing. */
  static async open(commands: Commands, files: SystemFiles): Promise<TableReader> {
    return new TableReader(commands, files, flavourOf(await commands.version()));
  }

  /** The current content of a table; empty when it does not exist. */
  async read(name: AnyTable): Promise<SavedTable> {
    const table = new SavedTable(name);
    if (this.#flavour === 'legacy' && !legacyTables(this.#files, this.#commands.family).has(name))
      return table;
    await this.#commands.save(name, (line) => table.take(line));
    return table;
  }
}
