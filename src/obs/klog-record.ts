import type { Caller } from './caller.ts';
import { describe, errorText, formatAttribute, quoteText, replaceForJson } from './klog-values.ts';
import type { LogAttributes } from './log.ts';

/** A log record before formatting. */
export interface LogRecord extends RecordHead {
  readonly severity: 'I' | 'E';
  readonly level: number;
  /** Empty for the root logger. */
  readonly name: string;
  readonly message: string;
  readonly error?: unknown;
  readonly attributes?: LogAttributes | undefined;
}

/** When and where a record was made. */
export interface RecordHead {
  /** Milliseconds since the epoch, with a fraction. */
  readonly time: number;
  readonly pid: number;
  readonly caller: Caller;
}

/** Formats `I1115 04:35:36.123456    1234 file.ts:12] "message" key="value"`, in local time. */
export function formatTextRecord(record: LogRecord): string {
  let line = header(record.severity, record) + quoteText(record.message);
  if (record.error !== undefined && record.error !== null) {
    line += formatAttribute('err', errorText(record.error));
  }
  if (record.name !== '') line += formatAttribute('logger', record.name);
  for (const [key, value] of Object.entries(record.attributes ?? {})) line += formatAttribute(key, value);
  return `${line}\n`;
}

/** Formats the header followed by the unquoted message. */
export function formatTextLine(record: LogRecord): string {
  return `${header(record.severity, record)}${record.message}\n`;
}

/** Formats one JSON object per line: ts in epoch milliseconds, v on info records only. */
export function formatJsonRecord(record: LogRecord): string {
  const head: Record<string, unknown> = {
    ts: Math.round(record.time * 1000) / 1000,
    caller: `${record.caller.file}:${record.caller.line}`,
    msg: record.message,
  };
  if (record.severity === 'I') head.v = record.level;
  if (record.name !== '') head.logger = record.name;
  if (record.error !== undefined && record.error !== null) head.err = errorText(record.error);
  try {
    return `${JSON.stringify({ ...head, ...record.attributes }, replaceForJson)}\n`;
  } catch {
    // An attribute is circular or throws. Convert each separately, so that only the bad one is lost.
    const shown = Object.entries(record.attributes ?? {}).map(([key, value]) => [key, describe(value)]);
    return `${JSON.stringify({ ...head, ...Object.fromEntries(shown) })}\n`;
  }
}

function header(severity: 'I' | 'E', { time, pid, caller }: RecordHead): string {
  const date = new Date(time);
  const micros = Math.floor((time - Math.floor(time)) * 1000);
  const day = `${two(date.getMonth() + 1)}${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const fraction = `${three(date.getMilliseconds())}${three(micros)}`;
  return `${severity}${day} ${clock}.${fraction} ${String(pid).padStart(7)} ${caller.file}:${caller.line}] `;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

function three(value: number): string {
  return String(value).padStart(3, '0');
}
