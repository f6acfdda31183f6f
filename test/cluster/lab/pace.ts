/**
 * How many times longer than written here tests wait: an emulated machine does everything more slowly. One factor for
 * all waits, from the environment.
 */
export const PACE_VARIABLE = 'KPT_PACE';

const factor = paceOf(process.env[PACE_VARIABLE]);

/** A wait, or a lifetime that something must outlive, as long as this machine needs it. */
export function paced(duration: number): number {
  return duration * factor;
}

/** 1 when nothing is said. */
export function paceOf(text: string | undefined): number {
  const pace = Number(text ?? 1);
  if (!Number.isInteger(pace) || pace < 1) {
    throw new Error(`${PACE_VARIABLE} must be a whole number from 1 on, not ${JSON.stringify(text)}`);
  }
  return pace;
}
