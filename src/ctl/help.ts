import { descriptionColumn, flagLines } from '../cli/flag-help.ts';
import { wrap } from '../lib/wrap.ts';
import { type AnyCommand, flagsOf, isLocal } from './command.ts';
import { type CtlFlag, commonFlags, versionFlag } from './flags.ts';
import type { ProgramName } from './program-name.ts';

const description = `kube-proxyctl shows the decisions of kube-proxy on this node, and whether the kernel agrees. It changes nothing; trace and explain --live add a table of their own while they run.`;

const exitCodes = `Exit codes:
  0  no problem found
  1  wrong usage, or no answer
  2  problem found: proxy unhealthy, kernel differs, or traced packet stopped
`;

/** Help for the program, wrapped at a width if there is one. */
export function programHelp(
  commands: readonly AnyCommand[],
  width?: number,
  program: ProgramName = 'kube-proxyctl',
): string {
  const usages = commands.map(({ name, usage }) => `  ${`${name} ${usage}`.trim()}`);
  const column = Math.max(...usages.map(({ length }) => length)) + 2;
  const lines = commands.flatMap(({ summary }, i) =>
    wrap(summary, (width ?? 0) - column).map(
      (line, j) => (j === 0 ? (usages[i] ?? '') : '').padEnd(column) + line,
    ),
  );
  return `${proseText(description, width)}

Usage:
  ${callOf(program)} COMMAND [flags]

Commands:
${lines.join('\n')}

Flags of every command:
${flagsText([...commonFlags, versionFlag], width)}
${proseText(exitCodes, width)}
Help for a command, with its own flags: ${program} help COMMAND
`;
}

/** Help for one command, wrapped at a width if there is one. */
export function commandHelp(
  command: AnyCommand,
  width?: number,
  program: ProgramName = 'kube-proxyctl',
): string {
  const { name, usage, summary, details } = command;
  const call = isLocal(command) ? program : callOf(program);
  return `${proseText(`${name}: ${summary}.`, width)}

Usage:
  ${call} ${`${name} ${usage}`.trim()} [flags]

${proseText(details, width)}

Flags:
${flagsText(flagsOf(command), width)}
${proseText(exitCodes, width)}`;
}

function callOf(program: ProgramName): string {
  return program === 'kube-proxyctl' ? program : `${program} -N NODE`;
}

function flagsText(flags: readonly CtlFlag[], width: number | undefined): string {
  const column = descriptionColumn(flags);
  return flags.flatMap((flag) => flagLines(flag, column, width).map((line) => `${line}\n`)).join('');
}

/** Wraps sentences at a width; a line ends after a sentence, and lines that begin with a blank stay as they are. */
function proseText(text: string, width: number | undefined): string {
  if (width === undefined) return text;
  const paragraphs = text.split(/(?<=[.:])\n|\n(?=[ \n])|(?<=\n)\n|(?<=\n .*)\n/);
  return paragraphs.flatMap((part) => (/^\s/.test(part) ? part : wrap(part, width))).join('\n');
}
