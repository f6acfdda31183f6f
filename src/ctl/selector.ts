import type { DiffReport } from '../inspect/api.ts';
import { isAddress, type Selector } from '../inspect/selection.ts';
import type { CommandContext } from './command.ts';
import type { CtlOptions } from './flags.ts';

/** The service ports that the arguments and -n ask for. */
export function selectorOf({ args, options }: Pick<CommandContext, 'args' | 'options'>): Selector {
  const [name] = args;
  return { ...(name !== undefined && { name }), ...namespaceOf(options) };
}

/** The namespace of -n; none with -A. */
export function namespaceOf({ namespace, allNamespaces }: CtlOptions): Pick<Selector, 'namespace'> {
  return namespace === '' || allNamespaces ? {} : { namespace };
}

/** Throws when a selector with a name found nothing. */
export function requireSome(items: readonly unknown[], { name, namespace }: Selector): void {
  if (items.length > 0 || name === undefined) return;
  const what = isAddress(name) ? 'service port or endpoint has the address' : 'service port is called';
  throw new Error(
    `no ${what} ${JSON.stringify(name)}${namespace === undefined ? '' : ` in namespace ${namespace}`}`,
  );
}

/**
 * The part of the report that is about the selected service ports. `known` are the selected ones that still exist; what
 * a deleted Service left in the kernel is selected by its name.
 */
export function selectDifferences(
  report: DiffReport,
  { name, namespace }: Selector,
  known: ReadonlySet<string>,
): DiffReport {
  if (name === undefined && namespace === undefined) return report;
  const items = report.items.filter(({ service }) => {
    if (service === null) return false;
    return (
      known.has(service) || (isIn(service, namespace) && (name === undefined || isCalled(service, name)))
    );
  });
  const families = report.families.map((look) => ({
    ...look,
    differences: items.filter(({ family }) => family === look.family).length,
  }));
  return { ...report, families, items };
}

/** Whether a service port is in this namespace; without a namespace, every one is. */
export function isIn(service: string, namespace: string | undefined): boolean {
  return namespace === undefined || service.startsWith(`${namespace}/`);
}

function isCalled(service: string, name: string): boolean {
  const key = name.includes('/') ? service : service.slice(service.indexOf('/') + 1);
  return key === name || key.startsWith(`${name}:`) || key.startsWith(`${name}/`);
}
