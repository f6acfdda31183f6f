import { Commands } from '../kernel/iptables/commands.ts';
import type { Flavour } from '../kernel/iptables/table-reader.ts';
import { hasIPv6 } from '../kernel/probe.ts';
import type { RunProgram } from '../kernel/program.ts';
import type { SystemFiles } from '../kernel/system-files.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import { type Family, families } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';

/** What it takes to look for iptables programs and run them. */
export interface ProgramContext {
  readonly run: RunProgram;
  readonly files: SystemFiles;
  readonly clock: Clock;
  readonly logger: Logger;
}

const flavours: readonly Flavour[] = ['legacy', 'nft'];

/** The families whose iptables rules this node can hold. Throws the reasons when there is none. */
export async function availableFamilies(context: ProgramContext): Promise<Set<Family>> {
  const available = new Set<Family>();
  const reasons: string[] = [];
  for (const family of families) {
    const reason = await unavailable(family, context);
    if (reason === undefined) {
      available.add(family);
      continue;
    }
    reasons.push(reason);
    context.logger.info('No iptables support for an IP family', { ipFamily: family, reason });
  }
  if (available.size > 0) return available;
  throw new Error(`iptables is not available on this host: ${reasons.join('; ')}`);
}

/** Why a family cannot be served; undefined when it can. */
async function unavailable(family: Family, context: ProgramContext): Promise<string | undefined> {
  if (family === 'IPv6' && !hasIPv6(context.files)) return 'this kernel has no IPv6, or it is switched off';
  const reason = await failureOf(new Commands({ family, ...context }));
  if (reason === undefined) return undefined;
  for (const variant of flavours) {
    const other = new Commands({ family, variant, ...context });
    if ((await failureOf(other)) === undefined) {
      return `${reason} (${other.program()} works here: it should be what ${other.program().split('-')[0]} is)`;
    }
  }
  return reason;
}

async function failureOf(commands: Commands): Promise<string | undefined> {
  try {
    await commands.rules('nat', 'POSTROUTING');
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
