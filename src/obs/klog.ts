import type { Clock } from '../lib/clock.ts';
import { callerOf, compileVmodule, type Locate, type VmoduleRule } from './caller.ts';
import {
  formatJsonRecord,
  formatTextLine,
  formatTextRecord,
  type LogRecord,
  type RecordHead,
} from './klog-record.ts';
import type { LogAttributes, Logger } from './log.ts';
import { BufferedSink, directSink, type LogSink, type LogStream } from './log-stream.ts';
import { RecentRecords } from './recent-records.ts';

export interface LoggerOptions {
  readonly format: 'text' | 'json';
  readonly verbosity: number;
  /** Honoured in text format only, as upstream does. */
  readonly vmodule?: readonly VmoduleRule[];
  /** Info records to stdout, errors to stderr; otherwise everything goes to stderr. */
  readonly splitStream?: boolean;
  /** Bytes of info records to buffer; needs splitStream. */
  readonly infoBufferSize?: number;
  /** Longest time that a record stays in the buffer, in milliseconds. */
  readonly flushFrequency?: number;
  readonly clock: Clock;
  readonly pid: number;
  readonly stdout: LogStream;
  readonly stderr: LogStream;
  /** Maps positions in the running file to the sources. */
  readonly locate?: Locate | undefined;
}

/** The root logger, with methods for the composition root only. */
export interface RootLogger extends Logger {
  setVerbosity(level: number): void;
  /** Goes on with other options, in every logger that was made from this one. Records in the buffer are written. */
  configure(options: LoggerOptions): void;
  /** Writes a line without attributes and, in text format, without quotes, if the verbosity reaches `level`. */
  print(level: number, line: string): void;
  /** The last records, the oldest first. */
  recent(): readonly string[];
  flush(): void;
  close(): void;
}

/** Builds the process's logger in klog's text or JSON format. */
export function createLogger(options: LoggerOptions): RootLogger {
  return new Root(new Core(options));
}

type Entry = (...args: never[]) => unknown;

/** What a configuration decides. */
interface LoggerForm {
  readonly format: (record: LogRecord) => string;
  readonly formatLine: (record: LogRecord) => string;
  readonly vmodule: ((file: string) => number | undefined) | undefined;
  readonly info: LogSink;
}

/** State shared by all loggers of a tree: verbosity and output. */
class Core {
  verbosity: number;
  #form: LoggerForm;
  readonly #time: () => number;
  readonly #pid: number;
  readonly #locate: Locate | undefined;
  readonly recent = new RecentRecords();
  readonly #errors: LogSink;
  readonly #output: LogSink;

  constructor(options: LoggerOptions) {
    this.verbosity = options.verbosity;
    this.#time = fineTime(options.clock);
    this.#pid = options.pid;
    this.#locate = options.locate;
    this.#errors = directSink(options.stderr);
    this.#output = directSink(options.stdout);
    this.#form = this.#formOf(options);
  }

  get info(): LogSink {
    return this.#form.info;
  }

  configure(options: LoggerOptions): void {
    this.#form.info.close();
    this.verbosity = options.verbosity;
    this.#form = this.#formOf(options);
  }

  #formOf(options: LoggerOptions): LoggerForm {
    const text = options.format === 'text';
    return {
      format: text ? formatTextRecord : formatJsonRecord,
      formatLine: text ? formatTextLine : formatJsonRecord,
      vmodule: text && options.vmodule?.length ? compileVmodule(options.vmodule) : undefined,
      info: options.splitStream ? infoSink(this.#output, options) : this.#errors,
    };
  }

  enabledAt(level: number, entry: Entry): boolean {
    if (level <= this.verbosity) return true;
    const { vmodule } = this.#form;
    return vmodule !== undefined && level <= (vmodule(callerOf(entry, this.#locate).file) ?? 0);
  }

  write(entry: Entry, record: Omit<LogRecord, keyof RecordHead>): void {
    const text = this.#form.format({ ...record, ...this.#head(entry) });
    this.recent.add(text);
    (record.severity === 'E' ? this.#errors : this.info).write(text);
  }

  print(entry: Entry, level: number, message: string): void {
    const text = this.#form.formatLine({ severity: 'I', level, name: '', message, ...this.#head(entry) });
    this.recent.add(text);
    this.info.write(text);
  }

  #head(entry: Entry): RecordHead {
    return { time: this.#time(), pid: this.#pid, caller: callerOf(entry, this.#locate) };
  }
}

function infoSink(direct: LogSink, options: LoggerOptions): LogSink {
  const size = options.infoBufferSize ?? 0;
  if (size <= 0) return direct;
  return new BufferedSink(direct, { size, flushEvery: options.flushFrequency ?? 5000, clock: options.clock });
}

/**
 * Makes a clock of wall-clock milliseconds with a fraction. The fraction comes from the monotonic clock, which is
 * re-anchored whenever the two have drifted apart by more than one millisecond.
 */
function fineTime(clock: Clock): () => number {
  let anchor = clock.now() - clock.monotonic();
  return () => {
    const wall = clock.now();
    const monotonic = clock.monotonic();
    if (Math.abs(wall - (monotonic + anchor)) > 1) anchor = wall - monotonic;
    return monotonic + anchor;
  };
}

class KlogLogger implements Logger {
  readonly core: Core;
  readonly #name: string;
  readonly #level: number;
  readonly #levels: Logger[] = [];

  constructor(core: Core, name = '', level = 0) {
    this.core = core;
    this.#name = name;
    this.#level = level;
  }

  get enabled(): boolean {
    return this.core.enabledAt(this.#level, enabledEntry);
  }

  info(message: string, attributes?: LogAttributes): void {
    const entry = KlogLogger.prototype.info;
    if (!this.core.enabledAt(this.#level, entry)) return;
    this.core.write(entry, { severity: 'I', level: this.#level, name: this.#name, message, attributes });
  }

  error(error: unknown, message: string, attributes?: LogAttributes): void {
    const record = { level: this.#level, name: this.#name, message, attributes, error } as const;
    this.core.write(KlogLogger.prototype.error, { severity: 'E', ...record });
  }

  /** Loggers are cached per level: in a hot path this is an array look-up. */
  v(level: number): Logger {
    const kept = this.#levels[level];
    if (kept) return kept;
    const logger = new KlogLogger(this.core, this.#name, level);
    this.#levels[level] = logger;
    return logger;
  }

  named(name: string): Logger {
    return new KlogLogger(this.core, this.#name ? `${this.#name}.${name}` : name, this.#level);
  }
}

/** The getter as a function, for callerOf. */
const enabledEntry: Entry =
  Object.getOwnPropertyDescriptor(KlogLogger.prototype, 'enabled')?.get ?? KlogLogger.prototype.v;

class Root extends KlogLogger implements RootLogger {
  setVerbosity(level: number): void {
    this.core.verbosity = level;
  }

  configure(options: LoggerOptions): void {
    this.core.configure(options);
  }

  print(level: number, line: string): void {
    const entry = Root.prototype.print;
    if (this.core.enabledAt(level, entry)) this.core.print(entry, level, line);
  }

  recent(): readonly string[] {
    return this.core.recent.list();
  }

  flush(): void {
    this.core.info.flush();
  }

  close(): void {
    this.core.info.close();
  }
}
