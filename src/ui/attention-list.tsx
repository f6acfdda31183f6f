import type { AttentionGroup } from './attention.ts';
import { serviceHash, servicesHash } from './route.ts';

const symbols = { outage: '✕', warning: '▲', note: '○' } as const;

/** What an operator should look at first. */
export function AttentionList({ groups }: { groups: readonly AttentionGroup[] }) {
  return (
    <section class="attention" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {groups.length === 0 && <p class="calm">● Nothing needs attention.</p>}
      {groups.map((group) => (
        <Group key={group.title} group={group} />
      ))}
    </section>
  );
}

function Group({ group }: { group: AttentionGroup }) {
  const { severity, title, count, items, state } = group;
  return (
    <div class={`group ${severity}`}>
      <h3>
        <span aria-hidden="true">{symbols[severity]}</span> {title}{' '}
        <small>{count.toLocaleString('en')}</small>
      </h3>
      <ul>
        {items.map(({ service, text }) => (
          <li key={`${service?.label} ${text}`}>
            {service && <a href={serviceHash(service.namespace, service.name)}>{service.label}</a>}
            {service && ' '}
            <span>{text}</span>
          </li>
        ))}
        {count > items.length && state && (
          <li>
            <a href={servicesHash({ state })}>All {count.toLocaleString('en')}</a>
          </li>
        )}
        {count > items.length && !state && <li>and {(count - items.length).toLocaleString('en')} more</li>}
      </ul>
    </div>
  );
}
