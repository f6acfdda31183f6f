import type { Leftover, LeftoverContext, LeftoverSource } from '../backends/leftovers.ts';
import type { Mode } from '../backends/mode.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { socketOwner } from '../kernel/socket-owner.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { Logger } from '../obs/log.ts';
import { accountingLeftovers } from './accounting-leftovers.ts';
import { copyLockName, runningCopy } from './copy-lock.ts';
import { leftoverSummary, removalReport, removalText } from './leftover-text.ts';
import { allModes, modesReplacedBy } from './modes.ts';

/** What became, or in a dry run would become, of what modes left in the kernel. */
export interface Removal {
  readonly removed: readonly Leftover[];
  /** Still there on purpose. */
  readonly kept: readonly Leftover[];
  /** Still there, and not on purpose. */
  readonly left: readonly Leftover[];
  /** Something could not be looked at or removed; the log says what. */
  readonly hasFailed: boolean;
}

/** How --dry-run and --cleanup print their result. */
export interface Output {
  readonly form: 'text' | 'json';
  write(text: string): void;
}

/** A mode, or another part of the program that leaves something in the kernel. */
interface Leaving {
  readonly name: string;
  readonly leftovers: LeftoverSource;
}

/** There is something to change in the kernel. */
export const EXIT_CHANGES = 2;

/**
 * Removes everything that any mode left (--cleanup), and prints what that was; a dry run only prints it. Returns the exit
 * code: 0, for a dry run with something to remove 2, without the privilege 1, and also 1 while a copy of this program
 * runs, which would write its rules again. Throws when something could not be removed or looked at.
 */
export async function cleanUp(isDryRun: boolean, output: Output, logger: Logger): Promise<number> {
  if (!hasNetAdmin(systemFiles)) {
    logger.error(new Error('CAP_NET_ADMIN is missing; run it as root'), 'Failed to clean up');
    return 1;
  }
  const copy = await runningCopy({ name: copyLockName, owner: socketOwner });
  if (copy !== undefined) {
    const reason = new Error(
      `kube-proxy-ts runs here (${copy}) and would write its rules again; stop it first`,
    );
    logger.error(reason, isDryRun ? 'A clean-up would fail now' : 'Failed to clean up');
    if (!isDryRun) return 1;
  }
  const context: LeftoverContext = { logger, scope: 'clean-up' };
  const work = isDryRun ? findLeftovers : removeLeftovers;
  const traffic = { name: 'traffic', leftovers: accountingLeftovers };
  const removal = await work([...(await allModes()), traffic], context);
  const { removed, left, hasFailed } = removal;
  output.write(output.form === 'json' ? removalReport(removal, isDryRun) : removalText(removal, isDryRun));
  if (hasFailed || (left.length > 0 && !isDryRun)) {
    throw new Error('encountered an error while tearing down rules');
  }
  return isDryRun && removed.length + left.length > 0 ? EXIT_CHANGES : 0;
}

/**
 * Removes what modes left that `mode` replaces, and logs what that was. The start goes on whatever fails. Returns what is
 * still there. Without CAP_NET_ADMIN it does not look.
 */
export async function removeReplaced(mode: Mode, logger: Logger): Promise<readonly Leftover[]> {
  if (!hasNetAdmin(systemFiles)) {
    logger.info('Rules that another mode may have left stay: removing them needs CAP_NET_ADMIN');
    return [];
  }
  const modes = await modesReplacedBy(mode);
  const { removed, left } = await removeLeftovers(modes, { logger, scope: 'take-over' });
  if (removed.length > 0)
    logger.info('Removed what another mode left', { removed: leftoverSummary(removed) });
  if (left.length > 0) {
    logger.error(undefined, 'Rules that another mode left are still there', { left: leftoverSummary(left) });
  }
  return left;
}

/** What a start in `mode` would remove; undefined when that cannot be found out for lack of CAP_NET_ADMIN. */
export async function findReplaced(mode: Mode, logger: Logger): Promise<Removal | undefined> {
  if (!hasNetAdmin(systemFiles)) return undefined;
  return findLeftovers(await modesReplacedBy(mode), { logger, scope: 'take-over' });
}

/** Removes, and then looks again: what is still there was not removed. */
async function removeLeftovers(modes: readonly Leaving[], context: LeftoverContext): Promise<Removal> {
  const before = await findLeftovers(modes, context);
  if (before.removed.length === 0) return before;
  let hasFailed = false;
  for (const mode of modes) {
    try {
      await mode.leftovers.remove(context);
    } catch (error) {
      hasFailed = true;
      context.logger.error(error, 'Failed to remove rules', { mode: mode.name });
    }
  }
  const after = await findLeftovers(modes, context);
  const left = [...after.removed, ...after.left];
  return {
    removed: without([...before.removed, ...before.left], [...left, ...after.kept]),
    kept: after.kept,
    left,
    hasFailed: hasFailed || before.hasFailed || after.hasFailed,
  };
}

/** What a removal would do. Modes may list the same chain: it can be removed if one of them can. */
async function findLeftovers(modes: readonly Leaving[], context: LeftoverContext): Promise<Removal> {
  const found = new Map<string, Leftover>();
  let hasFailed = false;
  for (const mode of modes) {
    try {
      for (const leftover of await mode.leftovers.find(context)) {
        const known = found.get(keyOf(leftover));
        if (known === undefined || known.stuck !== undefined) found.set(keyOf(leftover), leftover);
      }
    } catch (error) {
      hasFailed = true;
      context.logger.error(error, 'Failed to look for rules', { mode: mode.name });
    }
  }
  const fates = Map.groupBy(found.values(), ({ kept, stuck }) => {
    if (kept !== undefined) return 'kept';
    return stuck === undefined ? 'removed' : 'left';
  });
  return {
    removed: fates.get('removed') ?? [],
    kept: fates.get('kept') ?? [],
    left: fates.get('left') ?? [],
    hasFailed,
  };
}

/** The leftovers, or as many of each, that are not among the others. */
function without(leftovers: readonly Leftover[], others: readonly Leftover[]): Leftover[] {
  const there = new Map(others.map((leftover) => [keyOf(leftover), leftover.count]));
  return leftovers.flatMap(({ kept, stuck, ...leftover }) => {
    const count = leftover.count - (there.get(keyOf(leftover)) ?? 0);
    return count > 0 ? [{ ...leftover, count }] : [];
  });
}

function keyOf({ kind, family, place, name }: Leftover): string {
  return [kind, family, place, name].join('|');
}
