import assert from 'node:assert/strict';
import type { Backend } from '../../src/backends/backend.ts';
import { tableFacts } from '../../src/conntrack/kernel-table.ts';
import type { ConntrackReconciler } from '../../src/conntrack/reconciler.ts';
import type { KernelInterfaces } from '../../src/kernel/open.ts';
import { Sysctl } from '../../src/kernel/sysctl.ts';
import { systemFiles } from '../../src/kernel/system-files.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import type { EndpointSliceObject, ServiceObject } from '../../src/model/objects.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { createProxyMetrics } from '../../src/obs/proxy-metrics.ts';
import { Registry } from '../../src/obs/registry.ts';
import { FamilyProxier } from '../../src/proxier/family-proxier.ts';
import { reconcileFlows } from '../../src/proxier/flows.ts';
import { conditions, service, slice } from '../cluster/objects.ts';
import { nftablesEngine } from '../nftables/engine.ts';

/** Time-outs of this network namespace. */
export const tableFactsHere = () => tableFacts(new Sysctl(systemFiles));

/** A proxier for IPv4 that syncs at once and whose flows this reconciler cleans up. */
export function proxierOf(backend: Backend, reconciler: ConntrackReconciler): FamilyProxier {
  const registry = new Registry({ clock: systemClock, onCollectError: assert.ifError });
  return new FamilyProxier({
    family: 'IPv4',
    nodeName: 'n1',
    settings: { backend, minSyncPeriod: 1, syncPeriod: 50, healthCheckAddresses: [] },
    allowExternalIPs: true,
    countsServices: false,
    metrics: createProxyMetrics(registry, []),
    health: { queued: () => {}, updated: () => {} },
    serviceHealth: { listenOn: () => {}, sync: () => {} },
    flows: reconcileFlows(reconciler),
    journal: { note: () => {} },
    onProblem: ({ field }) => assert.fail(field),
    onRefused: (refused) => assert.deepEqual(refused, []),
    clock: systemClock,
    logger: silentLogger,
  });
}

export function nftablesIn({ nft }: KernelInterfaces): Backend {
  return nftablesEngine({
    settings: {
      family: 'IPv4',
      masqueradeBit: 14,
      masqueradeAll: false,
      localDetector: { kind: 'none' },
      nodePortAddresses: nodePortAddresses('IPv4', []),
      nodeIP: '192.0.2.10',
      localhostNodePorts: false,
    },
    client: nft,
  });
}

export function udpService(name: string, clusterIP: string): ServiceObject {
  const families = { clusterIP, clusterIPs: [clusterIP], ipFamilies: ['IPv4'] };
  return service({ namespace: 'default', name, ...families }, [{ name: '', protocol: 'UDP', port: 53 }]);
}

/** The only slice of a Service. */
export function udpSlice(serviceName: string, addresses: readonly string[]): EndpointSliceObject {
  return slice(`${serviceName}-1`, '', {
    namespace: 'default',
    resourceVersion: addresses.join(),
    serviceName,
    endpoints: addresses.map((address) => ({ address, ...conditions.ready })),
    ports: [{ name: '', protocol: 'UDP', port: 53 }],
  });
}
