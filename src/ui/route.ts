/** What the page shows, as the part of its address after `#`: the back button and links work with it. */
export type Route =
  | { readonly view: 'services'; readonly filter: ServiceFilter }
  | { readonly view: 'service'; readonly namespace: string; readonly name: string; readonly question: Asked }
  | { readonly view: 'timeline'; readonly filter: TimelineFilter };

/** Which rows of the table, and their order; '' for no restriction. */
export interface ServiceFilter {
  readonly search: string;
  readonly namespace: string;
  readonly state: string;
  readonly sort: string;
}

/** The packet that is explained beside the lanes of a Service; '' for `to` when there is none. */
export interface Asked {
  /** An address, or `node`. */
  readonly from: string;
  /** `ip:port/PROTO`. */
  readonly to: string;
}

export interface TimelineFilter {
  /** An event by name, '' for all, `-Sync` for all but successful syncs. */
  readonly event: string;
}

export const allServices: ServiceFilter = { search: '', namespace: '', state: '', sort: '' };
const nothingAsked: Asked = { from: '', to: '' };

/** Reads an address. Unknown ones mean the first view. */
export function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const parameters = new URLSearchParams(query);
  const get = (name: string) => parameters.get(name) ?? '';
  const [, view, ...names] = path.split('/').map(decoded);
  const [namespace = '', name = ''] = names;
  if (view === 'service' && name !== '') {
    return { view, namespace, name, question: { from: get('from'), to: get('to') } };
  }
  if (view === 'timeline') return { view, filter: { event: get('event') } };
  return {
    view: 'services',
    filter: { search: get('search'), namespace: get('namespace'), state: get('state'), sort: get('sort') },
  };
}

export function hashOf(route: Route): string {
  if (route.view === 'services') return `#/${queryOf({ ...route.filter })}`;
  if (route.view === 'timeline') return `#/timeline${queryOf({ ...route.filter })}`;
  const { namespace, name, question } = route;
  return `#/service/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${queryOf({ ...question })}`;
}

export function serviceHash(namespace: string, name: string, question = nothingAsked): string {
  return hashOf({ view: 'service', namespace, name, question });
}

export function servicesHash(filter: Partial<ServiceFilter> = {}): string {
  return hashOf({ view: 'services', filter: { ...allServices, ...filter } });
}

function queryOf(fields: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== '')).toString();
  return query === '' ? '' : `?${query}`;
}

/** A broken escape stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
