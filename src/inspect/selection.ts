import type { ServicePort } from '../model/service-port.ts';
import { servicePortName } from '../model/service-port.ts';

/** The parts of a service port that names are matched against. */
export type Named = Pick<ServicePort, 'key' | 'namespace' | 'name' | 'portName'>;

/**
 * What a name selects: `web` in every namespace, `shop/web`, one of its ports as `shop/web:http`, or the whole key
 * `shop/web:http/TCP`. Without a name, everything.
 */
export function selection(name: string | undefined): (port: Named) => boolean {
  if (name === undefined || name === '') return () => true;
  return (port) =>
    port.name === name ||
    name === `${port.namespace}/${port.name}` ||
    name === servicePortName(port) ||
    name === port.key;
}
