import type { Row } from './table.ts';

export interface Project {
  /** Every file of the project, changed or not. */
  readonly files: readonly string[];
  /** The test files among them. */
  readonly tests: readonly string[];
  /** The files that a file refers to, as paths or beginnings of paths. Empty for a file that is no source. */
  readonly references: (file: string) => readonly string[];
  readonly table: readonly Row[];
}

export interface Selection {
  /** Test files to run, in the order of the project. */
  readonly tests: readonly string[];
  /** For every changed file, why its tests were chosen. */
  readonly reasons: readonly Reason[];
}

export interface Reason {
  readonly changed: string;
  /** How many test files refer to it, directly or through other files. */
  readonly importedBy: number;
  /** The row of the table for it; undefined when there is none. */
  readonly row?: Row;
  /** Whether neither the table nor a reference leads to any test; all tests run then. */
  readonly isUnknown: boolean;
}

/** Chooses the tests that changed files can reach: those that refer to them, and those that the table names. */
export function selectTests(project: Project, changed: readonly string[]): Selection {
  const reached = reachOf(project, changed);
  const chosen = new Set<string>();
  const reasons = changed.map((file): Reason => {
    const users = reached.get(file) ?? [];
    const row = rowOf(project.table, file);
    // No file refers to a deleted file: files that used it are part of the change themselves.
    const isGone = !project.files.includes(file);
    const isUnknown = row === undefined && users.length === 0 && !isGone;
    const named = isUnknown || row?.[1] === 'everything' ? project.tests : matching(project.tests, row?.[1]);
    for (const test of [...users, ...named]) chosen.add(test);
    return { changed: file, importedBy: users.length, ...(row && { row }), isUnknown };
  });
  return { tests: project.tests.filter((test) => chosen.has(test)), reasons };
}

function matching(tests: readonly string[], beginnings: Exclude<Row[1], 'everything'> = []): string[] {
  return tests.filter((test) => beginnings.some((beginning) => test.startsWith(beginning)));
}

/** The row with the longest path that the file begins with. */
function rowOf(table: readonly Row[], file: string): Row | undefined {
  const fitting = table.filter(([beginning]) => file.startsWith(beginning));
  return fitting.sort(([a], [b]) => b.length - a.length)[0];
}

/** For every changed file, the test files that refer to it directly or through other files. */
function reachOf(project: Project, changed: readonly string[]): Map<string, string[]> {
  const users = new Map<string, string[]>(changed.map((file) => [file, []]));
  for (const test of project.tests) {
    const places = [...placesFrom(project, test)];
    for (const [file, list] of users) {
      if (places.some((place) => file.startsWith(place))) list.push(test);
    }
  }
  return users;
}

/** All files and folders that a file refers to directly or through other files, and the file itself. */
function placesFrom(project: Project, start: string): Set<string> {
  const places = new Set([start]);
  for (const place of places) {
    for (const next of project.references(place)) places.add(next);
  }
  return places;
}
