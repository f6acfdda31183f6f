import { closest } from '../lib/closest.ts';
import { quote, quoteRune } from '../lib/go-quote.ts';
import type { FlagType } from './flag-types.ts';
import { UsageError } from './usage-error.ts';

/** One flag of a program. `Target` is the record that its value is written to. */
export interface FlagRow<Target, T> {
  readonly name: string;
  readonly shorthand?: string;
  readonly type: FlagType<T>;
  readonly default: T;
  /** The description in the help text. */
  readonly help: string;
  /** The replacement. A flag with this is not in the help text and warns when used. */
  readonly deprecated?: string;
  readonly write: (target: Target, value: T) => void;
}

/** A flag without its value type, so that flags of all types fit into one table. */
export interface Flag<Target> {
  readonly name: string;
  readonly shorthand: string | undefined;
  readonly typeName: string;
  readonly noOptDefault: string | undefined;
  readonly defaultText: string;
  readonly help: string;
  readonly deprecated: string | undefined;
  /** Returns a new cell with the default. */
  open(): FlagCell<Target>;
}

/** The value of one flag while a command line is parsed. */
export interface FlagCell<Target> {
  /** Parses the user's text; throws an Error with the cause when it is invalid. */
  set(text: string): void;
  readonly text: string;
  readonly changed: boolean;
  writeTo(target: Target): void;
}

export function defineFlag<Target, T>(row: FlagRow<Target, T>): Flag<Target> {
  const { type } = row;
  return {
    name: row.name,
    shorthand: row.shorthand,
    typeName: type.name,
    noOptDefault: type.noOptDefault,
    defaultText: type.format(row.default),
    help: row.help,
    deprecated: row.deprecated,
    open() {
      let value = row.default;
      let changed = false;
      return {
        set(text) {
          value = type.parse(text, value, !changed);
          changed = true;
        },
        get text() {
          return type.format(value);
        },
        get changed() {
          return changed;
        },
        writeTo: (target) => row.write(target, value),
      };
    },
  };
}

/** A parsed command line. */
export interface ParsedFlags<Target> {
  readonly positionals: readonly string[];
  /** One line per use of a deprecated flag. */
  readonly warnings: readonly string[];
  /** The names of the flags that were given. */
  readonly changed: ReadonlySet<string>;
  /** The value of every flag in pflag's format, sorted by name. */
  readonly texts: ReadonlyMap<string, string>;
  /** Writes the flags that were given into the target. */
  writeTo(target: Target): void;
}

/**
 * Parses a command line by the rules of Go's pflag: flags and positionals may be mixed, `--` ends the flags, `_` in a
 * name equals `-`, the last of repeated scalars wins. Throws a UsageError at the first error.
 */
export function parseFlags<Target>(
  flags: readonly Flag<Target>[],
  argv: readonly string[],
): ParsedFlags<Target> {
  const reader = new ArgumentReader(flags);
  const positionals = reader.read(argv);
  const cells = [...reader.cells].sort(([a], [b]) => (a < b ? -1 : 1));
  const given = cells.filter(([, cell]) => cell.changed);
  return {
    positionals,
    warnings: reader.warnings,
    changed: new Set(given.map(([name]) => name)),
    texts: new Map(cells.map(([name, cell]) => [name, cell.text])),
    writeTo(target) {
      for (const [, cell] of given) cell.writeTo(target);
    },
  };
}

class ArgumentReader<Target> {
  readonly cells = new Map<string, FlagCell<Target>>();
  readonly warnings: string[] = [];
  readonly #byName = new Map<string, Flag<Target>>();
  readonly #byShorthand = new Map<string, Flag<Target>>();
  #rest: string[] = [];

  constructor(flags: readonly Flag<Target>[]) {
    for (const flag of flags) {
      this.#byName.set(flag.name, flag);
      if (flag.shorthand !== undefined) this.#byShorthand.set(flag.shorthand, flag);
      this.cells.set(flag.name, flag.open());
    }
  }

  /** Applies every flag and returns the positionals. */
  read(argv: readonly string[]): string[] {
    const positionals: string[] = [];
    // Reversed, so that pop() takes the next argument.
    this.#rest = argv.toReversed();
    for (let arg = this.#rest.pop(); arg !== undefined; arg = this.#rest.pop()) {
      if (arg === '--') return positionals.concat(this.#rest.toReversed());
      if (arg.startsWith('--')) this.#readLong(arg);
      else if (arg.startsWith('-') && arg !== '-') this.#readShorthands(arg.slice(1));
      else positionals.push(arg);
    }
    return positionals;
  }

  #readLong(arg: string): void {
    const body = arg.slice(2);
    if (body.startsWith('-') || body.startsWith('=')) throw usageError(`bad flag syntax: ${arg}`);
    const separator = body.indexOf('=');
    const name = separator < 0 ? body : body.slice(0, separator);
    const flag = this.#byName.get(name.replaceAll('_', '-'));
    if (!flag) {
      const meant = closest(name.replaceAll('_', '-'), [...this.#byName.keys()]);
      throw new UsageError(`unknown flag: --${name}`, { suggestion: meant && `--${meant}` });
    }
    const value = separator < 0 ? (flag.noOptDefault ?? this.#rest.pop()) : body.slice(separator + 1);
    if (value === undefined) throw usageError(`flag needs an argument: ${arg}`);
    this.#set(flag, value);
  }

  /** Reads `-v4`, `-v=4`, `-v 4` and bundles such as `-hv4`; `text` has no dash. */
  #readShorthands(text: string): void {
    let rest = text;
    while (rest !== '') {
      const flag = this.#byShorthand.get(rest.charAt(0));
      if (!flag) {
        // pflag works on bytes: it names only the first byte of a longer character.
        const byte = Buffer.from(rest)[0] ?? 0;
        throw usageError(`unknown shorthand flag: ${quoteRune(byte)} in -${rest}`);
      }
      rest = this.#readShorthand(flag, rest);
    }
  }

  /** Sets the flag that `text` begins with and returns the remaining shorthands. */
  #readShorthand(flag: Flag<Target>, text: string): string {
    const behind = text.slice(1);
    // `-v=` has the value "=".
    if (behind.length > 1 && behind.startsWith('=')) this.#set(flag, behind.slice(1));
    else if (flag.noOptDefault !== undefined) {
      this.#set(flag, flag.noOptDefault);
      return behind;
    } else {
      const value = behind === '' ? this.#rest.pop() : behind;
      if (value === undefined) throw usageError(`flag needs an argument: '${text.charAt(0)}' in -${text}`);
      this.#set(flag, value);
    }
    return '';
  }

  #set(flag: Flag<Target>, text: string): void {
    try {
      this.cells.get(flag.name)?.set(text);
    } catch (error) {
      const shown = flag.shorthand === undefined ? `--${flag.name}` : `-${flag.shorthand}, --${flag.name}`;
      throw usageError(`invalid argument ${quote(text)} for "${shown}" flag: ${(error as Error).message}`);
    }
    if (flag.deprecated !== undefined) {
      this.warnings.push(`Flag --${flag.name} has been deprecated, ${flag.deprecated}`);
    }
  }
}

function usageError(message: string): UsageError {
  return new UsageError(message);
}
