import type { TrafficReport } from '../../forwarder/forwarder.ts';
import type { ForwardedPort } from '../mode.ts';
import { servicePortOf } from './proxy-sockets.ts';

/** What the forwarder counted, by service port: its services are the lists of endpoints of a service port. */
export function forwardedPorts(report: TrafficReport): ForwardedPort[] {
  const lists = [...report].flatMap(([name, traffic]) => {
    const port = servicePortOf(name);
    return port ? [{ id: `${port.family} ${port.key}`, port, traffic }] : [];
  });
  return [...Map.groupBy(lists, ({ id }) => id).values()].flatMap((group) => {
    const [first] = group;
    if (!first) return [];
    const sum = (field: 'connections' | 'open' | 'bytesIn' | 'bytesOut' | 'unserved') =>
      group.reduce((total, { traffic }) => total + traffic[field], 0);
    return [
      {
        ...first.port,
        connections: sum('connections'),
        open: sum('open'),
        bytesIn: sum('bytesIn'),
        bytesOut: sum('bytesOut'),
        unserved: sum('unserved'),
        endpoints: endpointsOf(group.map(({ traffic }) => traffic.endpoints)),
      },
    ];
  });
}

type Endpoints = ForwardedPort['endpoints'];

function endpointsOf(lists: readonly ReadonlyMap<string, Omit<Endpoints[number], 'endpoint'>>[]): Endpoints {
  const all = lists.flatMap((list) => [...list].map(([endpoint, traffic]) => ({ endpoint, ...traffic })));
  return [...Map.groupBy(all, ({ endpoint }) => endpoint)].map(([endpoint, group]) => ({
    endpoint,
    connections: group.reduce((total, { connections }) => total + connections, 0),
    open: group.reduce((total, { open }) => total + open, 0),
    bytesIn: group.reduce((total, { bytesIn }) => total + bytesIn, 0),
    bytesOut: group.reduce((total, { bytesOut }) => total + bytesOut, 0),
    dialFailures: group.reduce((total, { dialFailures }) => total + dialFailures, 0),
  }));
}
