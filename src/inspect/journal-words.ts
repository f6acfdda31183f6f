import { count } from '../lib/count.ts';
import type { JournalItem } from './api.ts';

/** What happened, in one line. */
export function whatText(item: JournalItem): string {
  if (item.sync) return syncText(item);
  const text = item.texts.join('; ');
  return item.count > item.texts.length ? `${text} (${item.count} times)` : text;
}

/** `3 partial syncs, 4 service ports changed: shop/web, shop/cart and 2 more`. */
function syncText({ sync, count: syncs, services, serviceCount }: JournalItem): string {
  const first = syncs === 1 ? `${sync?.kind} sync` : `${syncs} ${sync?.kind} syncs`;
  const ports = sync?.servicePorts ?? 0;
  const changed = ports === 0 ? 'nothing changed' : `${count(ports, 'service port')} changed`;
  if (services.length === 0) return `${first}, ${changed}`;
  const names = services.map(({ service }) => service).join(', ');
  const more = serviceCount > services.length ? ` and ${serviceCount - services.length} more` : '';
  return `${first}, ${changed}: ${names}${more}`;
}
