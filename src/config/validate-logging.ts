import { parseQuantity } from '../lib/quantity.ts';
import type { FeatureGates } from './feature-gates.ts';
import { FieldErrors } from './field-errors.ts';
import type { LoggingConfig } from './types.ts';

const MAX_LEVEL = 2 ** 31 - 1;
const LEVEL_DETAIL = `Must be <= ${MAX_LEVEL}`;

/** Returns the errors of the logging section; `prefix` is its path in the messages. */
export function validateLogging(logging: LoggingConfig, gates: FeatureGates, prefix: string): string[] {
  const errors = new FieldErrors();
  if (logging.flushFrequency <= 0n) {
    errors.invalid(`${prefix}.flushFrequency`, logging.flushFrequency, 'Must be greater than zero');
  }
  if (logging.format !== 'text' && logging.format !== 'json') {
    errors.invalid(`${prefix}.format`, logging.format, 'Unsupported log format');
  } else if (logging.format === 'json' && !gates.enabled('LoggingBetaOptions')) {
    errors.forbidden(`${prefix}.format`, 'Log format json is disabled, see LoggingBetaOptions feature');
  }
  if (logging.verbosity > MAX_LEVEL) errors.invalid(`${prefix}.verbosity`, logging.verbosity, LEVEL_DETAIL);
  validateVmodule(logging, `${prefix}.vmodule`, errors);
  for (const format of ['text', 'json'] as const) {
    if (gates.enabled('LoggingAlphaOptions')) break;
    const { splitStream, infoBufferSize } = logging.options[format];
    const path = `${prefix}.options.${format}`;
    const detail = 'Feature LoggingAlphaOptions is disabled';
    if (splitStream) errors.forbidden(`${path}.splitStream`, detail);
    if (parseQuantity(infoBufferSize).value !== 0n) errors.forbidden(`${path}.infoBufferSize`, detail);
  }
  return errors.messages;
}

function validateVmodule({ vmodule, format }: LoggingConfig, path: string, errors: FieldErrors): void {
  if (vmodule.length > 0 && format !== 'text') errors.forbidden(path, 'Only supported for text log format');
  for (const [i, { filePattern, verbosity }] of vmodule.entries()) {
    const item = `${path}[${i}]`;
    if (filePattern === '') errors.required(item, 'File pattern must not be empty');
    if (/[=,]/.test(filePattern)) {
      errors.invalid(item, filePattern, 'File pattern must not contain equal sign or comma');
    }
    if (verbosity > MAX_LEVEL) errors.invalid(item, verbosity, LEVEL_DETAIL);
  }
}
