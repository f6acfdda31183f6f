/** The reference of kube-proxyctl, from the tables that the program uses. */

import { allCommands } from '../../src/ctl/all-commands.ts';
import { isLocal } from '../../src/ctl/command.ts';
import { allFlags, type CtlFlag, commonFlags, versionFlag } from '../../src/ctl/flags.ts';
import { code, table } from './markdown.ts';

/** Every command, then every flag with the commands that take it. */
export function ctlReference(): string {
  const commands = allCommands.map(({ name, usage, summary }) => [code(`${name} ${usage}`.trim()), summary]);
  const flags = allFlags.map((flag) => [
    flag.shorthand === undefined
      ? code(`--${flag.name}`)
      : `${code(`--${flag.name}`)}, ${code(`-${flag.shorthand}`)}`,
    takenBy(flag),
    flag.help,
  ]);
  return [table(['Command', ''], commands), table(['Flag', 'Of', ''], flags)].join('\n\n');
}

function takenBy(flag: CtlFlag): string {
  if (flag === versionFlag) return code('kube-proxyctl');
  if (commonFlags.includes(flag)) return 'every command';
  const takers = allCommands.filter((command) => !isLocal(command) && command.flags.includes(flag));
  return takers.map(({ name }) => code(name)).join(', ');
}
