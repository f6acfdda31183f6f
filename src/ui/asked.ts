import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../lib/thrown.ts';
import { AskError, ask, type Query } from './api.ts';
import { repeat } from './repeat.ts';

/** An answer, or why there is none. Both when the proxy does not answer any more. */
export interface Answer<T> {
  readonly report: T | undefined;
  readonly error: string | undefined;
}

const noAnswer = { report: undefined, error: undefined };
const usualMs = 2_000;

/** Asks a question of the API again and again while the view is shown; not while `page` is undefined. */
export function useAsked<T>(page: string | undefined, query: Query, everyMs = usualMs): Answer<T> {
  const key = JSON.stringify([page, query]);
  const [answer, setAnswer] = useState<Answer<T> & { readonly key: string }>({ ...noAnswer, key });
  useEffect(() => {
    if (page === undefined) return undefined;
    return repeat(everyMs, async (signal) => {
      try {
        setAnswer({ report: await ask<T>(page, query, signal), error: undefined, key });
      } catch (error) {
        if (signal.aborted) return;
        const keeps = error instanceof AskError && error.isSilence;
        setAnswer((old) => ({
          report: keeps && old.key === key ? old.report : undefined,
          error: messageOf(error),
          key,
        }));
      }
    });
  }, [key]);
  return answer.key === key ? answer : noAnswer;
}
