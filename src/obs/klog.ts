import type { Clock } from '../lib/clock.ts';
import type { Locate } from './bundle-lines.ts';
import { callerOf, compileVmodule, type VmoduleRule } from './caller.ts';
import { fineTime } from './fine-time.ts';
import {
  formatJsonRecord,
  formatTextLine,
  formatTextRecord,
  type LogRecord,
  type RecordHead,
} from './klog-record.ts';
import type { LogAttributes, Logger } from './log.ts';
import { BufferedSink, directSink, type LogSink, type LogStream } from './log-stream.ts';

export interface LoggerOptions {
  readonly format: 'text' | 'json';
  readonly verbosity: number;
  /** Honoured in text format only, as upstream does. */
  readonly vmodule?: readonly VmoduleRule[];
  /** Info records to stdout, errors to stderr; otherwise everything goes to stderr. */
  readonly splitStream?: boolean;
  /** Bytes of info records to hold back; needs splitStream. */
  readonly infoBufferSize?: number;
  /** The longest time, in milliseconds, that a held-back record waits. */
  readonly flushFrequency?: number;
  readonly clock: Clock;
  readonly pid: number;
  readonly stdout: LogStream;
  readonly stderr: LogStream;
  /** Where a place in the running file comes from; as it is when absent. */
  readonly locate?: Locate | undefined;
}

/** The root logger, with what only the composition root may do to logging. */
export interface RootLogger extends Logger {
  setVerbosity(level: number): void;
  /** Writes a line without attributes and, in text format, without quotes, if the verbosity reaches `level`. */
  print(level: number, line: string): void;
  flush(): void;
  close(): void;
}

/** Builds the process's logger in klog's text or JSON format. */
export function createLogger(options: LoggerOptions): RootLogger {
  return new Root(new Core(options));
}

type Entry = (...args: never[]) => unknown;

/** What all loggers of one tree share: verbosity and the way out. */
class Core {
  verbosity: number;
  readonly #format: (record: LogRecord) => string;
  readonly #formatLine: (record: LogRecord) => string;
  readonly #vmodule: ((file: string) => number | undefined) | undefined;
  readonly #time: () => number;
  readonly #pid: number;
  readonly #locate: Locate;
  readonly info: LogSink;
  readonly #errors: LogSink;

  constructor(options: LoggerOptions) {
    const text = options.format === 'text';
    this.verbosity = options.verbosity;
    this.#format = text ? formatTextRecord : formatJsonRecord;
    this.#formatLine = text ? formatTextLine : formatJsonRecord;
    this.#vmodule = text && options.vmodule?.length ? compileVmodule(options.vmodule) : undefined;
    this.#time = fineTime(options.clock);
    this.#pid = options.pid;
    this.#locate = options.locate ?? ((caller) => caller);
    this.#errors = directSink(options.stderr);
    this.info = options.splitStream ? infoSink(options) : this.#errors;
  }

  enabledAt(level: number, entry: Entry): boolean {
    if (level <= this.verbosity) return true;
    return this.#vmodule !== undefined && level <= (this.#vmodule(this.#locate(callerOf(entry)).file) ?? 0);
  }

  write(entry: Entry, record: Omit<LogRecord, keyof RecordHead>): void {
    const text = this.#format({ ...record, ...this.#head(entry) });
    (record.severity === 'E' ? this.#errors : this.info).write(text);
  }

  print(entry: Entry, level: number, message: string): void {
    this.info.write(this.#formatLine({ severity: 'I', level, name: '', message, ...this.#head(entry) }));
  }

  #head(entry: Entry): RecordHead {
    return { time: this.#time(), pid: this.#pid, caller: this.#locate(callerOf(entry)) };
  }
}

function infoSink(options: LoggerOptions): LogSink {
  const direct = directSink(options.stdout);
  const size = options.infoBufferSize ?? 0;
  if (size <= 0) return direct;
  return new BufferedSink(direct, { size, flushEvery: options.flushFrequency ?? 5000, clock: options.clock });
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

  /** Loggers are kept per level: asking for one in a hot path costs an array look-up. */
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

/** The getter as a function, for callerOf to leave out. */
const enabledEntry: Entry =
  Object.getOwnPropertyDescriptor(KlogLogger.prototype, 'enabled')?.get ?? KlogLogger.prototype.v;

class Root extends KlogLogger implements RootLogger {
  setVerbosity(level: number): void {
    this.core.verbosity = level;
  }

  print(level: number, line: string): void {
    const entry = Root.prototype.print;
    if (this.core.enabledAt(level, entry)) this.core.print(entry, level, line);
  }

  flush(): void {
    this.core.info.flush();
  }

  close(): void {
    this.core.info.close();
  }
}
