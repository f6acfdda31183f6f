import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { paced } from './cluster/lab/pace.ts';

/** Durations are for an ordinary machine; KPT_PACE multiplies them on a slower one. */
export interface Patience {
  /** Only a failing test waits this long, so it can be generous. */
  readonly withinMs?: number;
  readonly everyMs?: number;
  /** Further text for the failure message, such as the log of a program. */
  readonly onTimeout?: () => string | undefined;
}

const GENEROUS_MS = 30_000;
const OFTEN_MS = 10;

/**
 * Polls until the condition holds; fails when it does not hold in time. A condition may also fail an assertion, whose
 * message is then part of the failure. Any other error ends the wait at once.
 */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { withinMs = GENEROUS_MS, everyMs = OFTEN_MS, onTimeout }: Patience = {},
): Promise<void> {
  const end = performance.now() + paced(withinMs);
  for (;;) {
    const objection = await objectionOf(condition);
    if (objection === undefined) return;
    if (performance.now() >= end) throw failure(what, objection, onTimeout?.());
    await sleep(paced(everyMs));
  }
}

/** Polls until the value equals the wanted one; a failure shows how the last value differs. */
export async function eventuallyEqual<T>(
  what: string,
  look: () => T | Promise<T>,
  wanted: NoInfer<T>,
  patience: Patience = {},
): Promise<void> {
  let seen: T;
  const isSeen = async () => {
    seen = await look();
    return isDeepStrictEqual(seen, wanted);
  };
  const onTimeout = () => {
    const more = patience.onTimeout?.();
    return more === undefined ? difference(seen, wanted) : `${difference(seen, wanted)}\n${more}`;
  };
  await eventually(what, isSeen, { ...patience, onTimeout });
}

type Objection = 'does not hold' | assert.AssertionError;

async function objectionOf(condition: () => boolean | Promise<boolean>): Promise<Objection | undefined> {
  try {
    return (await condition()) ? undefined : 'does not hold';
  } catch (error) {
    if (error instanceof assert.AssertionError) return error;
    throw error;
  }
}

function failure(what: string, objection: Objection, more: string | undefined): assert.AssertionError {
  const said = objection instanceof assert.AssertionError ? [objection.message] : [];
  const lines = [`never happened: ${what}`, ...said, ...(more ? [more] : [])];
  return new assert.AssertionError({ message: lines.join('\n'), operator: 'eventually' });
}

function difference(actual: unknown, expected: unknown): string {
  return new assert.AssertionError({ actual, expected, operator: 'deepStrictEqual' }).message;
}
