import { UsageError } from '../cli/usage-error.ts';
import { closest } from '../lib/closest.ts';
import { quote } from '../lib/go-quote.ts';
import type { AnyCommand, LocalCommand } from './command.ts';
import { commands } from './commands.ts';
import { completionScript, shells } from './completion/scripts.ts';
import { commandHelp, programHelp } from './help.ts';

const help: LocalCommand = {
  name: 'help',
  usage: '[COMMAND]',
  arguments: { least: 0, most: 1 },
  summary: 'help for kube-proxyctl, or for one of its commands',
  details: 'kube-proxyctl COMMAND --help shows the same.',
  flags: [],
  completes: ['command'],
  textOf: ([name], width, program) =>
    name === undefined
      ? programHelp(allCommands, width, program)
      : commandHelp(commandOf(name), width, program),
};

const completion: LocalCommand = {
  name: 'completion',
  usage: shells.join('|'),
  arguments: { least: 1, most: 1 },
  summary: 'a script that makes a shell complete commands, flags, namespaces and Services',
  details: `Namespaces and Services are those of the proxy that runs; the shell asks it with each completion.

Examples:
  source <(kube-proxyctl completion bash)
  source <(kube-proxyctl completion zsh)
  kube-proxyctl completion fish | source`,
  flags: [],
  completes: ['shell'],
  textOf: ([shell = '']) => completionScript(shell),
};

/** In the order in which help shows them. */
export const allCommands: readonly AnyCommand[] = [...commands, completion, help];

/** Throws when there is no command of this name. */
export function commandOf(name: string): AnyCommand {
  const command = allCommands.find((known) => known.name === name);
  if (command) return command;
  const names = allCommands.map((known) => known.name);
  throw new UsageError(`unknown command ${quote(name)}`, { suggestion: closest(name, names) });
}
