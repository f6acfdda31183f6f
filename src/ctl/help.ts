import type { Command } from './command.ts';
import { type CtlFlag, commonFlags, versionFlag } from './flags.ts';

const description = `kube-proxyctl shows the decisions of kube-proxy on this node, and whether the kernel agrees. It changes nothing.`;

const exitCodes = `Exit codes:
  0  no problem found
  1  wrong usage, or no answer
  2  problem found: the proxy is unhealthy, or the kernel differs from its decisions
`;

export function programHelp(commands: readonly Command[]): string {
  const usages = commands.map(({ name, usage }) => `${name} ${usage}`.trim());
  const width = Math.max(...usages.map(({ length }) => length));
  const lines = commands.map(({ summary }, i) => `  ${(usages[i] ?? '').padEnd(width)}  ${summary}\n`);
  return `${description}

Usage:
  kube-proxyctl COMMAND [flags]

Commands:
${lines.join('')}
Flags of every command:
${flagLines([...commonFlags, versionFlag])}
${exitCodes}
Help for a command, with its own flags: kube-proxyctl COMMAND --help
`;
}

export function commandHelp({ name, usage, summary, details, flags }: Command): string {
  return `${name}: ${summary}.

Usage:
  kube-proxyctl ${`${name} ${usage}`.trim()} [flags]

${details}

Flags:
${flagLines([...flags, ...commonFlags])}
${exitCodes}`;
}

function flagLines(flags: readonly CtlFlag[]): string {
  const headings = flags.map(headingOf);
  const width = Math.max(...headings.map(({ length }) => length));
  return flags.map(({ help }, i) => `${(headings[i] ?? '').padEnd(width)}  ${help}\n`).join('');
}

function headingOf({ name, shorthand, typeName }: CtlFlag): string {
  const short = shorthand === undefined ? '      ' : `  -${shorthand}, `;
  return typeName === 'bool' ? `${short}--${name}` : `${short}--${name} ${typeName}`;
}
