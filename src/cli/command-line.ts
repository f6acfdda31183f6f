import { quoteList } from '../lib/go-quote.ts';
import { parseFlags } from './flag-set.ts';
import { allFlags } from './flags.ts';
import { type Options, optionsOf } from './options.ts';
import { UsageError } from './usage-error.ts';
import { versionText } from './version.ts';

/** What a valid command line asks for. The caller prints the warnings on stderr first. */
export type ParsedCommandLine = { readonly warnings: readonly string[] } & (
  | { readonly action: 'help' }
  | { readonly action: 'version'; readonly text: string }
  | { readonly action: 'run'; readonly options: Options }
);

/**
 * Parses the arguments of kube-proxy. Throws a UsageError for a wrong flag or a positional argument. --help takes
 * precedence over that error, --version does not.
 */
export function parseCommandLine(argv: readonly string[]): ParsedCommandLine {
  const parsed = parseFlags(allFlags, argv);
  const { warnings } = parsed;
  const options = optionsOf(parsed);
  if (options.help) return { action: 'help', warnings };
  if (parsed.positionals.some((argument) => argument !== '')) {
    const got = quoteList(parsed.positionals);
    throw new UsageError(`"kube-proxy" does not take any arguments, got ${got}`, { warnings });
  }
  const text = versionText(options.version);
  return text === undefined ? { action: 'run', warnings, options } : { action: 'version', warnings, text };
}
