import { readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism, machine, release, totalmem, uptime, version } from 'node:os';
import { API_VERSION, type NodeReport } from '../inspect/api.ts';
import { zoneOf } from '../model/node-eligibility.ts';
import { ownAddresses } from './node-facts.ts';
import type { Connected } from './start.ts';

/** The node and the machine that this process runs on. */
export async function nodeReport({
  nodeName,
  nodeManager,
  nodeStart,
}: Pick<Connected, 'nodeName' | 'nodeManager' | 'nodeStart'>): Promise<NodeReport> {
  return {
    apiVersion: API_VERSION,
    kind: 'Node',
    nodeName,
    zone: zoneOf(nodeManager.node) ?? '',
    nodeIPs: nodeStart.nodeIPs,
    podCIDRs: nodeStart.podCIDRs,
    addresses: await ownAddresses(),
    kernel: { release: release(), version: version(), machine: machine() },
    ...placeOfProcess(),
    cpus: availableParallelism(),
    memoryBytes: totalmem(),
    uptimeSeconds: Math.round(uptime()),
    process: { pid: process.pid, node: process.version, residentBytes: process.memoryUsage.rss() },
  };
}

/** Tells whether two processes see the same kernel rules. */
export function placeOfProcess(): Pick<NodeReport, 'bootId' | 'networkNamespace'> {
  return {
    bootId: tried(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    networkNamespace: tried(() => readlinkSync('/proc/self/ns/net')),
  };
}

function tried(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}
