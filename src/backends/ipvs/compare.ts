import type { SavedTable } from '../../kernel/iptables/saved-table.ts';
import { formatRealServer, type RealServer } from '../../kernel/ipvs/objects.ts';
import type { Clock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { SyncRequest } from '../backend.ts';
import type { Difference } from '../inspection.ts';
import { type JumpTable, savedRule } from '../jumps.ts';
import { chainDifferences, missingJump } from '../rule-differences.ts';
import { chains, jumps, tables as tableNames } from './chains.ts';
import type { CurrentState } from './current.ts';
import { DesiredState } from './desired.ts';
import { diffServers, diffShared, everything, type ServerChange } from './diff.ts';
import { isAbsent } from './errors.ts';
import { interfaceFacts } from './interface-facts.ts';
import { deviceName, type IpvsKernel } from './kernel.ts';
import { readCurrent } from './read.ts';
import { realServerText, serverText } from './server-text.ts';
import { kernelName, setNames } from './sets.ts';
import type { IpvsSettings } from './settings.ts';

const onDevice = `on ${deviceName}`;

/** The state to compare with. */
export interface ComparedKernel {
  readonly kernel: Pick<IpvsKernel, 'servers' | 'sets' | 'device' | 'nodeAddresses'>;
  readonly tables: Readonly<Record<JumpTable, SavedTable>>;
  readonly clock: Clock;
}

/** What a full sync of this request would change. Real servers that drain are as they should be. */
export async function compare(
  request: Pick<SyncRequest, 'plans'>,
  settings: IpvsSettings,
  compared: ComparedKernel,
): Promise<Difference[]> {
  const { kernel, tables, clock } = compared;
  const desired = await desiredState(request, settings, compared);
  const problems: Error[] = [];
  const current = await readCurrent(kernel, desired, problems);
  for (const problem of problems) if (!isAbsent(problem.cause)) throw problem;
  const timeSlice = new TimeSlice(clock);
  const differences = [
    ...(await ruleDifferences(desired, tables, timeSlice)),
    ...structureDifferences(desired, current, problems),
  ];
  const { servers, addresses, entries } = everything(current, desired);
  const weightOf = (server: string, real: string) => current.servers.get(server)?.reals.get(real)?.weight;
  const options = {
    isDraining: (server: string, real: string) => weightOf(server, real) === 0,
    resetWeights: true,
  };
  for (const key of servers) {
    if (timeSlice.isSpent) await timeSlice.yield();
    const changes = diffServers(current, desired, [key], options);
    for (const change of changes.servers) differences.push(...serverDifferences(change, current));
    for (const server of changes.deleteServers) {
      differences.push(difference(undefined, 'virtual server', key, undefined, serverText(server)));
    }
  }
  differences.push(...sharedDifferences(desired, diffShared(current, desired, { addresses, entries })));
  return withoutRepeats(differences);
}

/** What the plans want of this node. */
async function desiredState(
  { plans }: Pick<SyncRequest, 'plans'>,
  settings: IpvsSettings,
  { kernel, clock }: Pick<ComparedKernel, 'kernel' | 'clock'>,
): Promise<DesiredState> {
  const desired = new DesiredState(settings);
  desired.setFacts(interfaceFacts(settings, await kernel.nodeAddresses()));
  const timeSlice = new TimeSlice(clock);
  for (const [key, plan] of plans) {
    desired.place(key, plan);
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  return desired;
}

async function ruleDifferences(
  desired: DesiredState,
  tables: ComparedKernel['tables'],
  timeSlice: TimeSlice,
): Promise<Difference[]> {
  const { family } = desired.settings;
  const differences = jumps.flatMap((jump) =>
    missingJump(tables[jump.table], jump.from, savedRule(jump), family),
  );
  for (const name of tableNames) {
    const lines = Map.groupBy(linesOf(desired.rules(), name), (line) => line.split(' ', 2)[1] ?? '');
    for (const chain of chains[name]) {
      const wanted = (lines.get(chain) ?? []).map((line) => ({ line, service: undefined }));
      differences.push(
        ...(await chainDifferences({ table: tables[name], chain, wanted, family }, timeSlice)),
      );
    }
  }
  return differences;
}

/** The rules of one table in restore input. */
function linesOf(input: string, table: JumpTable): string[] {
  const lines = input.split('\n');
  const start = lines.indexOf(`*${table}`);
  return lines.slice(start, lines.indexOf('COMMIT', start)).filter((line) => line.startsWith('-A '));
}

/** Sets and the device: what is missing of them is then taken to be empty. */
function structureDifferences(
  { settings }: DesiredState,
  current: CurrentState,
  problems: readonly Error[],
): Difference[] {
  const missing = setNames.filter((set) => !current.sets.has(set));
  for (const set of missing) current.sets.set(set, new Set());
  const differences = missing.map((set) => {
    const name = kernelName(set, settings.family);
    return difference(undefined, 'ipset', name, `create ${name}`, undefined);
  });
  if (problems.length > missing.length) {
    differences.push(difference(undefined, 'device', deviceName, deviceName, undefined));
  }
  return differences;
}

function serverDifferences(change: ServerChange, current: CurrentState): Difference[] {
  const { owner, key, server, action, bind, unreadable } = change;
  if (unreadable) throw unreadable;
  const known = current.servers.get(key);
  const differences: Difference[] = [];
  if (action !== 'keep') {
    const found = known && serverText(known.server);
    differences.push(difference(owner, 'virtual server', key, serverText(server), found));
  }
  if (bind) differences.push(difference(owner, 'address', server.address, onDevice, undefined));
  const text = (real: RealServer | undefined) => real && realServerText(server, real);
  const realDifference = (real: RealServer, wanted: RealServer | undefined) => {
    const id = formatRealServer(real);
    const found = text(known?.reals.get(id));
    return difference(owner, 'real server', `${key} ${id}`, text(wanted), found);
  };
  for (const real of [...change.add, ...change.restore]) differences.push(realDifference(real, real));
  for (const real of change.remove) differences.push(realDifference(real, undefined));
  return differences;
}

function sharedDifferences(
  desired: DesiredState,
  { sets, unbind }: ReturnType<typeof diffShared>,
): Difference[] {
  const { family } = desired.settings;
  const differences = unbind.map((address) => difference(undefined, 'address', address, undefined, onDevice));
  for (const { set, add, remove } of sets) {
    const name = kernelName(set, family);
    for (const entry of add) {
      const [owner] = desired.entryOwners(set, entry);
      const text = `add ${name} ${entry}`;
      differences.push(difference(owner, 'ipset entry', `${name} ${entry}`, text, undefined));
    }
    for (const entry of remove) {
      const text = `add ${name} ${entry}`;
      differences.push(difference(undefined, 'ipset entry', `${name} ${entry}`, undefined, text));
    }
  }
  return differences;
}

/** Reports a missing address once, even if several virtual servers use it. */
function withoutRepeats(differences: readonly Difference[]): Difference[] {
  const bound = new Set<string>();
  return differences.filter(({ kind, object, wanted }) => {
    if (kind !== 'address' || wanted === undefined) return true;
    const isFirst = !bound.has(object);
    bound.add(object);
    return isFirst;
  });
}

function difference(
  service: string | undefined,
  kind: string,
  object: string,
  wanted: string | undefined,
  found: string | undefined,
): Difference {
  return { service, kind, object, wanted, found };
}
