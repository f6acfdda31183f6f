/**
 * The environment variable with the factor by which all waits of tests are longer: an emulated machine does everything
 * more slowly.
 */
export const PACE_VARIABLE = 'KPT_PACE';

const factor = paceOf(process.env[PACE_VARIABLE]);

/** Multiplies a wait or a lifetime by the factor for this machine. */
export function paced(duration: number): number {
  return duration * factor;
}

/** Parses the factor; returns 1 for undefined. */
export function paceOf(text: string | undefined): number {
  const pace = Number(text ?? 1);
  if (!Number.isInteger(pace) || pace < 1) {
    throw new Error(`${PACE_VARIABLE} must be a whole number from 1 on, not ${JSON.stringify(text)}`);
  }
  return pace;
}
