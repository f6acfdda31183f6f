import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { eventually } from '../eventually.ts';
import { kubeProxyctl } from '../program/run.ts';

/** How each shell starts without the user's files, gets the prompt READY, and loads the completion. */
export const shells = {
  bash: {
    start: 'bash --norc --noprofile -i',
    prompt: "PS1='READY '",
    load: 'source <(kube-proxyctl completion bash)',
  },
  zsh: {
    start: 'zsh -f -i',
    // npm sets EDITOR to vi, which would give zsh the keys of vi.
    prompt: "bindkey -e; PROMPT='READY '",
    load: 'autoload -U compinit; compinit -u -D; source <(kube-proxyctl completion zsh)',
  },
  fish: {
    start: 'fish --no-config -i',
    prompt: "function fish_prompt; echo 'READY '; end",
    load: 'kube-proxyctl completion fish | source',
  },
} as const;
export type ShellName = keyof typeof shells;

/** Why a shell cannot be used here; undefined when it can. */
export function shellUnavailable(name: ShellName): string | undefined {
  return spawnSync(name, ['--version']).status === 0 ? undefined : `${name} is not installed`;
}

/** A shell on a terminal, as a person uses it, with kube-proxyctl on its PATH. */
export class Shell {
  readonly #child: ChildProcess;
  readonly #home = mkdtempSync(join(tmpdir(), 'kpt-shell-'));
  #output = '';
  #results = 0;

  private constructor(name: ShellName) {
    const command = `stty cols 200 rows 50; exec ${shells[name].start}`;
    this.#child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: this.#home,
      env: {
        ...process.env,
        HOME: this.#home,
        XDG_CONFIG_HOME: this.#home,
        XDG_DATA_HOME: this.#home,
        TERM: 'dumb',
        PATH: `${dirname(kubeProxyctl)}:${process.env.PATH}`,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
    });
  }

  /** Starts a shell and loads the completion. */
  static async open(name: ShellName): Promise<Shell> {
    const shell = new Shell(name);
    const { prompt, load } = shells[name];
    await shell.#until('the first prompt', () => /[#%>$] /.test(shell.#output));
    await shell.#printed(`${prompt}; ${load}; echo RESULT loaded\r`);
    return shell;
  }

  /** Types a line and the tab key, and returns the line that the shell makes of it. */
  completed(line: string): Promise<string> {
    // Ctrl-A goes to the beginning of the line.
    return this.#printed(`${line}\t\u0001echo RESULT \r`);
  }

  /** Ends the shell with `exit`, after Ctrl-U has emptied the line. */
  async close(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin?.end('\u0015exit\r');
    await ended;
    rmSync(this.#home, { recursive: true, force: true });
  }

  /**
   * Presses these keys, which print a line that begins with RESULT, and returns what follows. Keys that arrive before a
   * shell has set up its terminal can be lost, so this ends at the next prompt.
   */
  async #printed(keys: string): Promise<string> {
    const wanted = this.#results++;
    const found = () => [...this.#output.matchAll(/\nRESULT ([^\r\n]*)\r/g)][wanted];
    this.#child.stdin?.write(keys);
    await this.#until(`an answer to ${JSON.stringify(keys)} and a prompt`, () => {
      const result = found();
      return result !== undefined && this.#output.includes('READY ', result.index);
    });
    return found()?.[1] ?? '';
  }

  #until(what: string, holds: () => boolean): Promise<void> {
    return eventually(what, holds, { withinMs: 60_000, onTimeout: () => this.#output });
  }
}
