import type { Behaviour, Flood, Target } from '../../test/cluster/flood/flood.ts';
import { nodeIP } from '../programs/cluster.ts';

/** The health check node port of a Service of the benchmark. */
export const healthCheckNodePort = 32_256;

const livez = { host: '127.0.0.1', port: 10256, path: '/livez' };
const metrics = { host: '127.0.0.1', port: 10249, path: '/metrics' };
const serviceHealth = { host: nodeIP, port: healthCheckNodePort, path: '/' };
const everyPort = [livez, metrics, serviceHealth];

export const floods: readonly Flood[] = [
  flood('50 × 50 pipelined', 'pipelined', 50, 50, [livez]),
  flood('500 × 200 pipelined', 'pipelined', 500, 200, [livez]),
  flood('2,000 × 200, answers never read', 'unread', 2_000, 200, [livez]),
  flood('500 × 200 pipelined, health check node port', 'pipelined', 500, 200, [serviceHealth]),
  flood('50 × 50 pipelined, /metrics', 'pipelined', 50, 50, [metrics]),
  flood('200 × 50, answers never read, /metrics', 'unread', 200, 50, [metrics]),
  flood('1,000 slow requests on every port', 'slow', 1_000, 0, everyPort),
  flood('1,000 half requests on every port', 'half', 1_000, 0, everyPort),
  flood('5,000 connections on every port', 'silent', 5_000, 0, everyPort),
];

function flood(
  name: string,
  behaviour: Behaviour,
  connections: number,
  depth: number,
  targets: readonly Target[],
): Flood {
  return { name, behaviour, connections, depth, targets };
}
