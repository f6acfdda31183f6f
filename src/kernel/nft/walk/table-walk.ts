import type { Chain, Hook } from '../objects.ts';
import { type Arrival, ChainWalk, type Course, type TableFacts } from './chain-walk.ts';
import { type FirstPacket, PacketState } from './packet-state.ts';

/** A table that was read from the kernel, to run packets through. */
export interface WalkedTable extends TableFacts {
  readonly chains: readonly Chain[];
}

/** One possible outcome for a packet; `state` has its final destination. */
export interface Ending {
  readonly state: PacketState;
  readonly action: 'accept' | 'drop' | 'reject';
}

type ChainType = 'filter' | 'nat';

/**
 * Runs the first packet of a connection through the base chains of one table, in the order of hooks and priorities, with
 * the routing decision in between. Ignores other tables, routes and sockets.
 */
export async function walkTable(packet: FirstPacket, table: WalkedTable): Promise<Ending[]> {
  const walk = new ChainWalk(table);
  const endings: Ending[] = [];
  const pass = async (
    states: readonly PacketState[],
    hook: Hook,
    types: readonly ChainType[] = ['filter', 'nat'],
  ) => {
    let passing = [...states];
    for (const chain of attachedTo(table.chains, hook, types)) {
      const arrivals: Arrival[] = [];
      for (const state of passing) {
        for (const arrival of await walk.through(state, chain.name)) arrivals.push(arrival);
      }
      passing = [];
      for (const { state, course } of arrivals) {
        const action = decided(course, chain);
        if (action === undefined) passing.push(state);
        else endings.push({ state, action });
      }
    }
    return passing;
  };

  const isMadeHere = packet.input === undefined;
  const first = await pass([new PacketState(packet)], isMadeHere ? 'output' : 'prerouting');
  const here = first.filter(({ destination }) => table.isLocal(destination));
  const elsewhere = first.filter((state) => !here.includes(state));
  if (isMadeHere) {
    // A packet to the node itself leaves and comes in again by the loopback interface. NAT was done on output.
    const looped = await pass(here, 'postrouting');
    for (const state of looped) state.input = 'lo';
    here.splice(0, here.length, ...(await pass(looped, 'prerouting', ['filter'])));
  }
  const delivered = await pass(here, 'input');
  const forwarded = isMadeHere ? elsewhere : await pass(elsewhere, 'forward');
  const sent = await pass(forwarded, 'postrouting');
  for (const state of [...delivered, ...sent]) endings.push({ state, action: 'accept' });
  return endings;
}

/** The final action of a base chain; undefined when the packet continues with the next one, as after an accept. */
function decided(course: Course, { base }: Chain): 'drop' | 'reject' | undefined {
  if (course === 'drop' || course === 'reject') return course;
  return course === 'next' && base?.policy === 'drop' ? 'drop' : undefined;
}

function attachedTo(chains: readonly Chain[], hook: Hook, types: readonly ChainType[]): Chain[] {
  return chains
    .filter(({ base }) => base?.hook === hook && types.some((type) => type === base.type))
    .sort((a, b) => (a.base?.priority ?? 0) - (b.base?.priority ?? 0));
}
