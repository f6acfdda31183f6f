import type { Family } from '../../model/ip.ts';
import type { SystemFiles } from '../system-files.ts';
import type { AnyTable, Commands } from './commands.ts';
import { SavedTable } from './saved-table.ts';

/** What an iptables program stands on: the kernel's x_tables, or nf_tables. */
export type Flavour = 'legacy' | 'nft';

/** Reads `iptables v1.8.9 (nf_tables)`. Versions before 1.8 name nothing and are the older kind. */
export function flavourOf(version: string): Flavour {
  return version.includes('(nf_tables)') ? 'nft' : 'legacy';
}

/** The tables of x_tables that are there. */
export function legacyTables(files: SystemFiles, family: Family): ReadonlySet<string> {
  try {
    const names = files.read(family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names');
    return new Set(names.split('\n'));
  } catch {
    // No such file means no x_tables, and so no tables.
    return new Set();
  }
}

/** Reads the tables of one family and makes none: legacy programs have the kernel create what they are asked for. */
export class TableReader {
  readonly #commands: Commands;
  readonly #files: SystemFiles;
  readonly #flavour: Flavour;

  private constructor(commands: Commands, files: SystemFiles, flavour: Flavour) {
    this.#commands = commands;
    this.#files = files;
    this.#flavour = flavour;
  }

  /** Rejects when there is no such program. */
  static async open(commands: Commands, files: SystemFiles): Promise<TableReader> {
    return new TableReader(commands, files, flavourOf(await commands.version()));
  }

  /** A table as it is now; one that is not there is empty. */
  async read(name: AnyTable, counters = false): Promise<SavedTable> {
    const table = new SavedTable(name);
    if (this.#flavour === 'legacy' && !legacyTables(this.#files, this.#commands.family).has(name))
      return table;
    await this.#commands.save(name, (line) => table.take(line), counters);
    return table;
  }
}
