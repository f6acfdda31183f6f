/** One line of a Dockerfile: `COPY --from=build a b` has the flag `from` and the words `a` and `b`. */
export interface Instruction {
  readonly line: number;
  readonly name: (typeof names)[number];
  readonly flags: ReadonlyMap<string, string>;
  /** The words after the name and the flags. */
  readonly text: string;
}

export interface Stage {
  readonly name: string;
  /** An image, or an earlier stage. */
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

const names = ['ARG', 'COPY', 'RUN', 'WORKDIR', 'ENV', 'ENTRYPOINT'] as const;

/** Reads the part of the language that our Dockerfile uses; throws, with the line, on anything else. */
export function parseDockerfile(text: string): Stage[] {
  const stages: { name: string; base: string; instructions: Instruction[] }[] = [];
  for (const [i, content] of text.split('\n').entries()) {
    const line = i + 1;
    if (content.trim() === '' || content.startsWith('#')) continue;
    const from = /^FROM (\S+) AS (\S+)$/.exec(content);
    if (from) {
      stages.push({ base: from[1] ?? '', name: from[2] ?? '', instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (!stage) throw new Error(`line ${line}: ${JSON.stringify(content)} comes before the first FROM`);
    stage.instructions.push(parseInstruction(content, line));
  }
  return stages;
}

function parseInstruction(content: string, line: number): Instruction {
  const [, word = '', options = '', text = ''] = /^([A-Z]+)((?: --\w+=\S+)*) (.*[^\\])$/.exec(content) ?? [];
  const name = names.find((each) => each === word);
  if (!name) throw new Error(`line ${line}: cannot follow ${JSON.stringify(content)}`);
  const flags = new Map(
    [...options.matchAll(/--(\w+)=(\S+)/g)].map(([, flag = '', value = '']) => [flag, value] as const),
  );
  return { line, name, flags, text };
}
