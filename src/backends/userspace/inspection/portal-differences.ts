import { describeKey } from '../../../kernel/nft/describe-element.ts';
import { describeVerdict } from '../../../kernel/nft/describe-rule.ts';
import type { Element } from '../../../kernel/nft/objects.ts';
import type { Family } from '../../../model/ip.ts';
import type { Difference } from '../../inspection.ts';
import { layoutDifferences } from '../../nft-layout-differences.ts';
import { meaningOf, type PortalElement, placeOf } from '../portals/elements.ts';
import { portalSetDefinition, portalTable, setNames } from '../portals/layout.ts';
import { portalChains } from '../portals/rules.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { TableSnapshot } from './table-snapshot.ts';
import { portToBeOpened } from './wanted-services.ts';

/** An element and the key of the service port that it is for, if for one. */
export interface OwnedElement {
  readonly service: string | undefined;
  readonly element: PortalElement;
}

/** The table itself, its sets, and its chains with their rules: what does not depend on services. */
export function tableDifferences(settings: UserspaceSettings, { chains, sets }: TableSnapshot): Difference[] {
  const table = portalTable(settings.family);
  const wanted = { table, stamp: 'present', sets: setNames, chains: portalChains(settings) };
  const stamp = chains.size + sets.size > 0 ? 'present' : undefined;
  return layoutDifferences(wanted, { stamp, sets, chains }, true);
}

/** Elements that are missing, differ, or are not wanted. */
export function elementDifferences(
  wanted: readonly OwnedElement[],
  before: readonly OwnedElement[],
  { elements, family }: TableSnapshot,
): Difference[] {
  const owners = new Map(before.map((each) => [placeOf(each.element), each.service]));
  const missing = new Map(wanted.map((each) => [placeOf(each.element), each]));
  const differences: Difference[] = [];
  for (const held of elements) {
    const place = placeOf(held);
    const own = missing.get(place);
    missing.delete(place);
    if (own && meaningOf(own.element) === meaningOf(held)) continue;
    const service = own ? own.service : owners.get(place);
    differences.push(difference(family, service, own?.element, held));
  }
  for (const { service, element } of missing.values()) {
    differences.push(difference(family, service, element, undefined));
  }
  return differences;
}

function difference(
  family: Family,
  service: string | undefined,
  wanted: PortalElement | undefined,
  found: PortalElement | undefined,
): Difference {
  const some = wanted ?? found;
  const object = some ? describeKey(portalSetDefinition(family, some.set), some.element) : '';
  const [should, is] = [wanted, found].map((each) => each && meaningText(each.element));
  return { service, kind: 'element', object, wanted: should, found: is };
}

/** What an element leads to; `present` for those of plain sets. */
function meaningText({ data, verdict, comment }: Element): string {
  const target = verdict ? describeVerdict(verdict) : data && portText(data);
  if (target === undefined) return 'present';
  return comment === undefined ? target : `${target} comment ${JSON.stringify(comment)}`;
}

/** Two bytes in network order. */
function portText([high = 0, low = 0]: Uint8Array): string {
  const port = (high << 8) | low;
  return port === portToBeOpened ? 'the port of a socket to be opened' : String(port);
}
