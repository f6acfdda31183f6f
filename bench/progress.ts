/** Shows the current step: on a terminal in one changing line, elsewhere in a line for each step. */
export class Progress {
  readonly #name: string;
  readonly #out: NodeJS.WriteStream;

  constructor(name: string, out: NodeJS.WriteStream = process.stderr) {
    this.#name = name;
    this.#out = out;
  }

  show(step: string): void {
    this.#write(`${this.#name}: ${step} …`, this.#out.isTTY ? '' : '\n');
  }

  end(result: string): void {
    this.#write(`${this.#name}: ${result}`, '\n');
  }

  #write(line: string, end: string): void {
    const rewind = this.#out.isTTY ? '\r\x1b[K' : '';
    this.#out.write(`${rewind}${line}${end}`);
  }
}
