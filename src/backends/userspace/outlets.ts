import type { Frontend } from '../../plan/frontend.ts';
import type { EndpointList } from '../../plan/service-plan.ts';
import type { UserspaceSettings } from './settings.ts';

/** A list of endpoints, and whether they see the client's own address. Each has a proxy port of its own. */
export type Outlet = EndpointList | `${EndpointList} as client`;

/** The settings that say whose address is kept. */
export type SourceSettings = Pick<UserspaceSettings, 'keepsSource' | 'masqueradeAll' | 'localDetector'>;

/** Where connections to one frontend go. Undefined: nowhere, or for `near` and `pods`, where others go. */
export interface Outlets {
  readonly outside: Outlet | undefined;
  /** For this node itself and its pods. */
  readonly near: Outlet | undefined;
  /** For pods of this node alone. */
  readonly pods: Outlet | undefined;
}

export function listOf(outlet: Outlet): EndpointList {
  return outlet === 'local' || outlet === 'local as client' ? 'local' : 'cluster';
}

export function keepsSource(outlet: Outlet): boolean {
  return outlet.endsWith(' as client');
}

export function outletsOf(frontend: Frontend, settings: SourceSettings): Outlets {
  const { endpoints, nearEndpoints, masqueraded } = frontend;
  const kept = keptSources(frontend, settings);
  const outside = outlet(endpoints, kept.others);
  // Of clients whose address policy Local keeps, this node is the exception.
  const isNodeApart = kept.others && masqueraded === 'this node';
  const near = outlet(nearEndpoints ?? (isNodeApart ? endpoints : undefined), false);
  const pods = kept.pods ? outlet(nearEndpoints ?? endpoints, true) : undefined;
  return { outside, near, pods: pods === (near ?? outside) ? undefined : pods };
}

/** The outlets that any of the frontends uses. */
export function outletsOfAll(frontends: readonly Frontend[], settings: SourceSettings): Set<Outlet> {
  return new Set(
    frontends.flatMap((frontend) => {
      const { outside, near, pods } = outletsOf(frontend, settings);
      return [outside, near, pods].filter((one) => one !== undefined);
    }),
  );
}

/** Whose address endpoints see: that of pods of this node, and that of clients elsewhere. */
function keptSources(
  { masqueraded }: Frontend,
  { keepsSource: isPossible, masqueradeAll, localDetector }: SourceSettings,
): { readonly pods: boolean; readonly others: boolean } {
  if (!isPossible || masqueraded === 'all') return { pods: false, others: false };
  const knowsPods = localDetector.kind !== 'none';
  if (masqueraded === 'this node') return { pods: knowsPods, others: true };
  if (masqueradeAll) return { pods: false, others: false };
  // Nobody is masqueraded where no setting tells pods from other clients.
  return { pods: knowsPods, others: !knowsPods };
}

function outlet(list: EndpointList | undefined, isKept: boolean): Outlet | undefined {
  return list && isKept ? `${list} as client` : list;
}
