import { cutComment } from '../../kernel/nft/userdata.ts';
import { servicePortName } from '../../model/service-port.ts';
import { stableTable } from '../../model/stable-table.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { EndpointList, ServicePlan } from '../../plan/service-plan.ts';
import { admittedSources, cidrOf } from '../../plan/source-ranges.ts';
import { type Bytes, fromArray, wordBytes } from './bytes.ts';
import { loopbackChain, rejectChain } from './fixed-chains.ts';
import { keyOf } from './frontends.ts';
import type { HandlerNumbers } from './handler-numbers.ts';
import { localSlotBase, type SetName } from './layout.ts';
import { type EndpointBytes, type Placement, targetOf } from './placement.ts';
import type { NftablesSettings } from './settings.ts';
import { type Draw, drawChain, type SharedChainName, sourcesChain, splitChain } from './shared-chains.ts';
import type { StickyPlacement } from './sticky-numbers.ts';
import { memberNumber, serviceNumber } from './sticky-rules.ts';

/**
 * What an element carries besides its key, as one comparable string: data bytes as they are, nothing for plain sets, a
 * chain's number with the element's comment behind it, and a verdict in nft's words, with the comment on a second line.
 */
export type Value = string;

/** Receives elements one by one: a service may have thousands. */
export type Emit = (set: SetName, key: Bytes, value: Value) => void;

/** The maps that hold frontends of a kind. */
const addressMaps = {
  dispatch: 'frontends',
  endpoints: 'endpoints',
  refused: 'refused',
  sticky: 'sticky-services',
} as const;
const nodePortMaps = {
  dispatch: 'nodeports',
  endpoints: 'nodeport-endpoints',
  refused: 'refused-nodeports',
  sticky: 'sticky-nodeports',
} as const;

/** All elements that a placed service port has to itself. Keys never repeat, within it or between services. */
export function elementsOf(
  placement: Placement,
  settings: NftablesSettings,
  handlers: HandlerNumbers,
  emit: Emit,
): void {
  for (const frontend of placement.frontends) {
    emitFrontend(placement, frontend, handlers, emit);
    if (isGuarded(frontend)) emitSources(placement.plan, frontend, settings, emit);
    if (frontend.kind === 'node port') emitLoopback(placement.plan, frontend, settings, emit);
  }
  const isReached = placement.frontends.some((frontend) => dispatchOf(placement, frontend));
  if (placement.sticky && isReached) emitSticky(placement, placement.sticky, emit);
}

/** The shared chains that a placed service port refers to. */
export function chainsOf(placement: Placement, settings: NftablesSettings): SharedChainName[] {
  return placement.frontends.flatMap((frontend) =>
    [
      dispatchOf(placement, frontend)?.chain ?? [],
      isGuarded(frontend)
        ? sourcesChain(sourcesOf(placement.plan, settings).map((source) => source.prefix))
        : [],
    ].flat(),
  );
}

function emitFrontend(placement: Placement, frontend: Frontend, handlers: HandlerNumbers, emit: Emit): void {
  const { plan, sticky } = placement;
  const maps = frontend.kind === 'node port' ? nodePortMaps : addressMaps;
  const key = keyOf(frontend);
  const comment = cutComment(servicePortName(plan.port));
  const dispatch = dispatchOf(placement, frontend);
  if (dispatch) emit(maps.dispatch, key, wordBytes(handlers.of(dispatch.chain)) + comment);
  const { action } = frontend.outside;
  if (action === 'drop') emit(maps.refused, key, `drop\n${comment}`);
  if (action === 'reject') emit(maps.refused, key, `goto ${rejectChain}\n${comment}`);
  if (!dispatch) return;
  if (sticky) emit(maps.sticky, key, wordBytes(serviceNumber(sticky.service)));
  else for (const list of dispatch.lists) emitSlots(placement, list, key, maps.endpoints, emit);
}

function emitSlots(placement: Placement, list: EndpointList, key: Bytes, map: SetName, emit: Emit): void {
  const base = list === 'cluster' ? 0 : localSlotBase;
  for (const [slot, target] of placement[list].entries()) emit(map, key + wordBytes(base + slot), target);
}

interface Dispatch {
  readonly chain: SharedChainName;
  /** The lists that the chain draws from. */
  readonly lists: readonly EndpointList[];
}

/** The chain that handles a frontend; undefined when nothing is forwarded for it. */
function dispatchOf(placement: Placement, frontend: Frontend): Dispatch | undefined {
  const { plan } = placement;
  const { endpoints: list, nearEndpoints: near } = frontend;
  const draw = (list: EndpointList): Draw => ({
    from: frontend.kind === 'node port' ? 'nodeport' : 'pick',
    list,
    count: placement[list].length,
    affinitySeconds: plan.port.affinitySeconds,
    balance: plan.balance,
  });
  if (near) return { chain: splitChain(draw(near), list && draw(list)), lists: list ? [near, list] : [near] };
  if (!list) return undefined;
  return {
    chain: drawChain(draw(list), frontend.kind === 'cluster IP' ? 'cluster' : 'external'),
    lists: [list],
  };
}

interface Source {
  readonly prefix: number;
  readonly address: Bytes;
}

function emitSources(plan: ServicePlan, frontend: Frontend, settings: NftablesSettings, emit: Emit): void {
  const sources = sourcesOf(plan, settings);
  const chain = sourcesChain(sources.map((source) => source.prefix));
  const key = keyOf(frontend);
  emit('guarded', key, `goto ${chain}\n${cutComment(servicePortName(plan.port))}`);
  for (const { prefix, address } of sources) emit(`sources-${prefix}`, key + address, '');
}

/** Only sources in the service's ranges may reach it. */
function isGuarded({ sourceRanges }: Frontend): boolean {
  return sourceRanges.length > 0;
}

/** Admitted sources, each once. */
function sourcesOf({ port }: ServicePlan, { nodeIP }: NftablesSettings): Source[] {
  const sources = new Map<string, Source>();
  for (const { prefix, bytes } of admittedSources(port, nodeIP).map(cidrOf)) {
    const address = fromArray(bytes);
    sources.set(`${prefix}/${address}`, { prefix, address });
  }
  return [...sources.values()];
}

function emitLoopback(plan: ServicePlan, frontend: Frontend, settings: NftablesSettings, emit: Emit): void {
  const { protocol } = plan.port;
  // TCP and UDP to an address that the configuration names are served from user space.
  const isServed = protocol !== 'SCTP' && settings.nodePortAddresses.explicitLoopback;
  if (!settings.localhostNodePorts || isServed) return;
  emit(
    'loopback-nodeports',
    keyOf(frontend),
    `goto ${loopbackChain(protocol)}\n${cutComment(servicePortName(plan.port))}`,
  );
}

function emitSticky(placement: Placement, sticky: StickyPlacement, emit: Emit): void {
  const { service, members } = sticky;
  const number = (target: Bytes): Bytes => wordBytes(memberNumber(service, members.get(target) ?? 0));
  for (const list of ['cluster', 'local'] as const) {
    const prefix = wordBytes(serviceNumber(service, list));
    for (const [slot, target] of slotsOf(placement, list).entries()) {
      emit('sticky-slots', prefix + wordBytes(slot), number(target));
    }
    for (const target of placement[list]) {
      emit(list === 'cluster' ? 'sticky-members' : 'sticky-local-members', number(target), target);
    }
  }
}

/** The endpoint of each slot that may be drawn: one slot each, or those of a table that is the same on all nodes. */
function slotsOf(placement: Placement, list: EndpointList): readonly EndpointBytes[] {
  const { plan } = placement;
  const endpoints = plan[list];
  if (plan.balance === 'default' || endpoints.length === 0) return placement[list];
  const targets = endpoints.map(targetOf);
  return Array.from(stableTable(endpoints.map(({ id }) => id)), (index) => targets[index] ?? '');
}
