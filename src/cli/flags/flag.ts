import { defineFlag, type Flag } from '../flag-set.ts';
import type { FlagType } from '../flag-types.ts';
import type { FlagValues } from './flag-values.ts';

/** A flag of kube-proxy. */
export type ProxyFlag = Flag<FlagValues>;

/** What a few flags have and most have not. */
interface Extras {
  readonly shorthand?: string;
  readonly deprecated?: string;
}

/** One row of the flag table: name, type, default, where the value goes, what help says. */
export function flag<T>(
  name: string,
  type: FlagType<T>,
  defaultValue: T,
  write: (values: FlagValues, value: T) => void,
  help: string,
  extras: Extras = {},
): ProxyFlag {
  return defineFlag({ name, type, default: defaultValue, write, help, ...extras });
}

/** Writes a flag into one field of the section that `of` picks. */
export function field<Section extends object, Key extends keyof Section>(
  of: (values: FlagValues) => Section,
  key: Key,
): (values: FlagValues, value: Section[Key]) => void {
  return (values, value) => {
    of(values)[key] = value;
  };
}
