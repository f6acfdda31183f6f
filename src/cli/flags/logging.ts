import { bool, duration, level, quantity, string, vmodule } from '../flag-types.ts';
import { type FlagValues, field, flag, type ProxyFlag } from './flag.ts';

const logging = (o: FlagValues) => o.draft.logging;
const text = (o: FlagValues) => o.draft.logging.options.text;
const json = (o: FlagValues) => o.draft.logging.options.json;

export const loggingFlags: readonly ProxyFlag[] = [
  flag('v', level, field(logging, 'verbosity'), 'How much to log; higher numbers log more.', {
    shorthand: 'v',
  }),
  flag(
    'vmodule',
    vmodule,
    field(logging, 'vmodule'),
    'Verbosity of single source files, as a comma-separated list of pattern=N over file names. Text format only.',
  ),
  flag('logging-format', string, field(logging, 'format'), 'Form of the log: "text" or "json".'),
  flag(
    'log-flush-frequency',
    duration,
    field(logging, 'flushFrequency'),
    'Longest time that log records stay in a buffer.',
  ),
  flag(
    'log-text-split-stream',
    bool,
    field(text, 'splitStream'),
    'In text format, send errors to stderr and the rest to stdout. Needs the gate LoggingAlphaOptions.',
  ),
  flag(
    'log-text-info-buffer-size',
    quantity,
    field(text, 'infoBufferSize'),
    'In text format with split streams, how many bytes of the stdout stream to buffer (512, 1k, 2Ki, 3M); 0 means none. Needs the gate LoggingAlphaOptions.',
  ),
  flag(
    'log-json-split-stream',
    bool,
    field(json, 'splitStream'),
    'In JSON format, send errors to stderr and the rest to stdout. Needs the gate LoggingAlphaOptions.',
  ),
  flag(
    'log-json-info-buffer-size',
    quantity,
    field(json, 'infoBufferSize'),
    'In JSON format with split streams, how many bytes of the stdout stream to buffer (512, 1k, 2Ki, 3M); 0 means none. Needs the gate LoggingAlphaOptions.',
  ),
];
