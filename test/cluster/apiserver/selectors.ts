import type { RawObject } from './store.ts';

export type Selector = (object: RawObject) => boolean;

/** Thrown for a selector that this server does not support. */
export class SelectorError extends Error {}

/** The label selectors in use: `!key`, `key`, `key=value`, `key!=value`, joined by commas. */
export function labelSelector(text: string): Selector {
  const terms = termsOf(text).map((term) => labelTerm(term));
  return (object) => terms.every((matches) => matches(object.metadata.labels ?? {}));
}

type Labels = Readonly<Record<string, string>>;

function labelTerm(term: string): (labels: Labels) => boolean {
  const absent = /^!([\w./-]+)$/.exec(term)?.[1];
  if (absent !== undefined) return (labels) => !(absent in labels);
  const [, key = '', operator, value] = /^([\w./-]+)(?:(!=|==?)([\w.-]*))?$/.exec(term) ?? [];
  if (key === '') throw new SelectorError(`unable to parse requirement: ${term}`);
  if (operator === undefined) return (labels) => key in labels;
  if (operator === '!=') return (labels) => labels[key] !== value;
  return (labels) => labels[key] === value;
}

/** Field selectors over `metadata.name`, `metadata.namespace` and `spec.clusterIP`. */
export function fieldSelector(text: string): Selector {
  const terms = termsOf(text).map((term) => {
    const [, field = '', operator = '', value = ''] = /^([\w.]+)(!=|==?)(.*)$/.exec(term) ?? [];
    const read = fields[field];
    if (read === undefined) throw new SelectorError(`field label not supported: ${field || term}`);
    return (object: RawObject) => (read(object) === value) === (operator !== '!=');
  });
  return (object) => terms.every((matches) => matches(object));
}

const fields: Readonly<Record<string, (object: RawObject) => unknown>> = {
  'metadata.name': ({ metadata }) => metadata.name,
  'metadata.namespace': ({ metadata }) => metadata.namespace,
  'spec.clusterIP': ({ spec }) =>
    typeof spec === 'object' && spec !== null && 'clusterIP' in spec ? spec.clusterIP : '',
};

function termsOf(text: string): string[] {
  return text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '');
}
