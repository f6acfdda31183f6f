import { formatDuration, parseDuration } from '../lib/duration.ts';
import { formatFloat } from '../lib/go-float.ts';
import { quote } from '../lib/go-quote.ts';
import { parseQuantity } from '../lib/quantity.ts';
import { parseCIDR, parseIP } from '../model/ip.ts';
import { readCsvRecord, writeCsvRecord } from './csv-record.ts';
import { splitHostPort } from './host-port.ts';
import { parseBool, parseFloat32, parseInt32, parseUint31 } from './strconv.ts';

/**
 * Converts the text of a flag to a value and back. `parse` gets the value so far and whether this is the first use of
 * the flag; it throws an Error with the cause to show to the user.
 */
export interface FlagType<T> {
  /** The name of the type in the help text. */
  readonly name: string;
  /** The value of a flag without one. A flag with this never takes the next argument as its value. */
  readonly noOptDefault?: string;
  parse(text: string, previous: T, first: boolean): T;
  /** The value in pflag's format, as /flagz shows it. */
  format(value: T): string;
}

export const bool: FlagType<boolean> = {
  name: 'bool',
  noOptDefault: 'true',
  parse: parseBool,
  format: String,
};

export const int32: FlagType<number> = { name: 'int32', parse: parseInt32, format: String };

export const float32: FlagType<number> = { name: 'float32', parse: parseFloat32, format: formatFloat };

export const string: FlagType<string> = text('string');
export const proxyMode: FlagType<string> = text('ProxyMode');
export const localMode: FlagType<string> = text('LocalMode');

export const duration: FlagType<bigint> = { name: 'duration', parse: parseDuration, format: formatDuration };

export const quantity: FlagType<string> = {
  name: 'quantity',
  parse: (value) => parseQuantity(value).text,
  format: (value) => value,
};

export const level: FlagType<number> = { name: 'Level', parse: parseUint31, format: String };

/** A list as one CSV record. The first use replaces the default, later ones append. */
export const stringSlice: FlagType<string[]> = {
  name: 'strings',
  parse(value, previous, first) {
    const items = value === '' ? [] : readCsvRecord(value);
    return first ? items : [...previous, ...items];
  },
  format: (items) => `[${writeCsvRecord(items)}]`,
};

/** A list of CIDRs and addresses in the format of `stringSlice`. */
export const networks: FlagType<string[]> = {
  name: stringSlice.name,
  parse(value, previous, first) {
    const items = stringSlice.parse(value, previous, first);
    const wrong = items.find((item) => !parseCIDR(item) && !parseIP(item));
    if (wrong !== undefined) throw new Error(`${quote(wrong)} is neither a CIDR nor an IP address`);
    return items;
  },
  format: stringSlice.format,
};

/** Parts of the metrics of Services, separated by commas. */
export const serviceMetrics: FlagType<string[]> = {
  name: stringSlice.name,
  parse(value, previous, first) {
    const items = stringSlice.parse(value, previous, first);
    const wrong = items.find((item) => item !== 'connections' && item !== 'bytes');
    if (wrong !== undefined) throw new Error(`${quote(wrong)} is neither connections nor bytes`);
    return items;
  },
  format: stringSlice.format,
};

/** A number above 0. */
export const positive: FlagType<number> = {
  name: int32.name,
  parse(value) {
    const number = parseInt32(value);
    if (number < 1) throw new Error(`${number} is not above 0`);
    return number;
  },
  format: int32.format,
};

export const mapStringBool: FlagType<Record<string, boolean>> = {
  name: 'mapStringBool',
  parse(value, previous, first) {
    const entries = new Map(first ? [] : Object.entries(previous));
    for (const pair of value.split(',')) {
      if (pair === '') continue;
      const separator = pair.indexOf('=');
      if (separator < 0) throw new Error('malformed pair, expect string=bool');
      const key = pair.slice(0, separator).trim();
      entries.set(key, boolOf(key, pair.slice(separator + 1).trim()));
    }
    return Object.fromEntries(entries);
  },
  format(map) {
    const pairs = Object.entries(map).map(([key, value]) => `${key}=${value}`);
    return pairs.sort().join(',');
  },
};

/** An address; an empty text does not change the value. */
export const ip: FlagType<string> = {
  name: 'ip',
  parse(value, previous) {
    if (value === '') return previous;
    requireIP(value);
    return value;
  },
  format: (value) => value,
};

/** An address with or without a port; an empty text does not change the value. */
export const ipport: FlagType<string> = {
  name: 'ipport',
  parse(value, previous) {
    if (value === '') return previous;
    if (parseIP(value)) return value;
    const split = splitHostPort(value);
    if ('fault' in split) {
      throw new Error(
        `${quote(value)} is not in a valid format (ip or ip:port): address ${value}: ${split.fault}`,
      );
    }
    requireIP(split.host);
    if (!/^[0-9]+$/.test(split.port) || Number(split.port) > 65535) {
      throw new Error(`${quote(split.port)} is not a valid number`);
    }
    return value;
  },
  format: (value) => value,
};

/** One `--vmodule` rule: the verbosity of the source files that match a pattern. */
export interface ModuleVerbosity {
  filePattern: string;
  verbosity: number;
}

export const vmodule: FlagType<ModuleVerbosity[]> = {
  name: 'pattern=N,...',
  parse(value, previous) {
    const items = value.split(',').filter((item) => item !== '');
    return [...previous, ...items.map(moduleVerbosity)];
  },
  format: (items) => items.map((item) => `${item.filePattern}=${item.verbosity}`).join(','),
};

function text(name: string): FlagType<string> {
  return { name, parse: (value) => value, format: (value) => value };
}

function boolOf(key: string, value: string): boolean {
  try {
    return parseBool(value);
  } catch (error) {
    throw new Error(`invalid value of ${key}: ${value}, err: ${(error as Error).message}`);
  }
}

function requireIP(value: string): void {
  if (!parseIP(value)) throw new Error(`${quote(value)} is not a valid IP address`);
}

function moduleVerbosity(item: string): ModuleVerbosity {
  const [filePattern = '', verbosity = '', ...rest] = item.split('=');
  if (filePattern === '' || verbosity === '' || rest.length > 0) {
    throw new Error(`${quote(item)} does not have the pattern=N format`);
  }
  try {
    return { filePattern, verbosity: parseUint31(verbosity) };
  } catch (error) {
    throw new Error(`parsing verbosity in ${quote(item)}: ${(error as Error).message}`);
  }
}
