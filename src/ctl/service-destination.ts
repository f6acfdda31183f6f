import type { ServiceReport } from '../inspect/api.ts';
import { canonicalIP, familyOf } from '../model/ip.ts';
import { servicePortName } from '../model/service-port.ts';
import type { AskedPacket } from './source.ts';

const pattern = /^(?:[a-z0-9.-]+\/)?([a-z0-9-]*[a-z][a-z0-9-]*)(?::[a-z0-9-]+)?(?:\/[a-z]+)?$/i;

/** Whether the destination of a packet is `[NAMESPACE/]NAME[:PORT][/PROTO]`, not an address. */
export function isServiceDestination(text: string): boolean {
  const [whole] = pattern.exec(text) ?? [];
  return whole !== undefined && canonicalIP(text.replace(/\/.*/, '')) === undefined;
}

/**
 * The packet to the cluster IP of the service port that `text` names. `found` are the service ports with that name. One
 * of the source's family is chosen, and TCP among equal ports of several protocols. Throws when there is none, or when
 * `text` means several ports.
 */
export function packetToService(source: string, text: string, found: readonly ServiceReport[]): AskedPacket {
  const family = familyOf(source);
  const reachable = found.filter((port) => family === undefined || port.family === family);
  const first = found[0];
  if (!first) throw new Error(`no service port is called ${JSON.stringify(text)}`);
  const [only] = reachable;
  if (!only) throw new Error(`${servicePortName(first)} has no ${family} address`);
  const destinations = new Set(
    reachable.map(({ family: one, namespace, name, port }) => `${one} ${namespace}/${name} ${port}`),
  );
  const families = new Set(reachable.map((one) => one.family)).size;
  if (destinations.size > families) {
    const names = [...new Set(reachable.map(servicePortName))].sort();
    throw new Error(`${JSON.stringify(text)} means several service ports: ${names.join(', ')}`);
  }
  const inFamily = reachable.filter((port) => port.family === only.family);
  const { clusterIP, port, protocol } = inFamily.find((one) => one.protocol === 'TCP') ?? only;
  return { source, destination: clusterIP, port: String(port), protocol };
}
