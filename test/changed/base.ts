/** What a change is compared with, and why with that. */
export interface Base {
  readonly commit: string;
  readonly why: string;
}

/** What git says about the place that the change was made at. */
export interface Place {
  readonly head: string;
  /** Where this branch left `main`; undefined when there is no `main`. */
  readonly fork?: string;
  /** Whether files differ from the last commit. */
  readonly isDirty: boolean;
}

/** Chooses the commit to compare with: the one asked for, else where the branch began, else the last commit or the one before. */
export function chooseBase({ head, fork, isDirty }: Place, wanted?: string): Base {
  if (wanted !== undefined) return { commit: wanted, why: 'as asked for' };
  if (fork !== undefined && fork !== head) return { commit: fork, why: 'where this branch left main' };
  if (isDirty) return { commit: head, why: 'the last commit: only uncommitted changes count' };
  return { commit: `${head}~`, why: 'the commit before the last, since nothing is uncommitted' };
}
