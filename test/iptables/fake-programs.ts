import type { ProgramEnd, ProgramOptions, RunProgram } from '../../src/kernel/program.ts';

/** A command line as it was started, with what was written to it. */
export interface Started {
  readonly command: string;
  readonly input: string;
}

/** How a fake program ends; 0 and nothing to say when it does not care. */
export interface FakeEnd {
  readonly status?: number;
  /** Standard output. */
  readonly lines?: readonly string[];
  /** Standard error. */
  readonly text?: string;
  /** The program cannot be started at all. */
  readonly missing?: boolean;
}

/** Programs made of a function from the command line to the end. */
export class FakePrograms {
  readonly started: Started[] = [];
  readonly #answer: (command: string, input: string) => FakeEnd | undefined;
  #pid = 100;

  constructor(answer: (command: string, input: string) => FakeEnd | undefined = () => undefined) {
    this.#answer = answer;
  }

  get commands(): string[] {
    return this.started.map(({ command }) => command);
  }

  readonly run: RunProgram = async (program, args, options) => {
    const command = [program, ...args].join(' ');
    const input = await inputOf(options);
    const { status = 0, lines = [], text = '', missing } = this.#answer(command, input) ?? {};
    if (missing)
      throw Object.assign(new Error(`spawn ${program} ENOENT`), { code: 'ENOENT', syscall: 'spawn' });
    options.onStart?.(++this.#pid);
    this.started.push({ command, input });
    for (const line of lines) options.onLine?.(line);
    return endOf(status, options.onLine ? text : `${lines.join('\n')}${text}`);
  };
}

async function inputOf({ input }: ProgramOptions): Promise<string> {
  let text = '';
  if (input) for await (const piece of input) text += piece;
  return text;
}

function endOf(status: number, output: string): ProgramEnd {
  return { status, timedOut: false, output };
}
