import { main } from '../../src/ctl/main.ts';
import type { Terminal } from '../../src/ctl/terminal.ts';

/** A terminal without colours that records what is written, or a pipe when it has no columns. */
export class RecordedTerminal implements Terminal {
  text = { stdout: '', stderr: '' };
  exitCode: number | string | null | undefined;
  readonly env = { NO_COLOR: '1' };
  readonly stdout: Terminal['stdout'];
  readonly stderr: Terminal['stderr'];

  constructor(columns?: number, rows = 50) {
    const write = (stream: 'stdout' | 'stderr') => (text: string) => {
      this.text[stream] += text;
    };
    this.stdout = { write: write('stdout'), ...(columns !== undefined && { isTTY: true, columns, rows }) };
    this.stderr = { write: write('stderr') };
  }

  /** Runs kube-proxyctl; the words of the command line are separated by blanks. */
  async run(args: string): Promise<void> {
    await main(args.split(' '), this);
  }
}
