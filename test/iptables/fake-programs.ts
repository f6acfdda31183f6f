import type { ProgramEnd, ProgramOptions, RunProgram } from '../../src/kernel/program.ts';

/** A command line that was started, with its input. */
export interface Started {
  readonly command: string;
  readonly input: string;
}

/** How a fake program ends; by default with status 0 and without output. */
export interface FakeEnd {
  readonly status?: number;
  /** Standard output. */
  readonly lines?: readonly string[];
  /** Standard error. */
  readonly text?: string;
  /** The program cannot be started. */
  readonly missing?: boolean;
}

/** Fake programs: a function from the command line to how it ends. */
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
