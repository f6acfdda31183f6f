/** The commit that a change is compared with, and why. */
export interface Base {
  readonly commit: string;
  readonly why: string;
}

/** What git knows about the branch of the change. */
export interface Place {
  readonly head: string;
  /** Where this branch left `main`; undefined when there is no `main`. */
  readonly fork?: string;
  /** Whether files differ from the last commit. */
  readonly isDirty: boolean;
}

/** Chooses the commit to compare with: `wanted`, where the branch left main, the last commit, or its parent. */
export function chooseBase({ head, fork, isDirty }: Place, wanted?: string): Base {
  if (wanted !== undefined) return { commit: wanted, why: 'as asked for' };
  if (fork !== undefined && fork !== head) return { commit: fork, why: 'where this branch left main' };
  if (isDirty) return { commit: head, why: 'the last commit: only uncommitted changes count' };
  return { commit: `${head}~`, why: 'the commit before the last, since nothing is uncommitted' };
}
