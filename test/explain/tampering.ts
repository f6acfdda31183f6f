import assert from 'node:assert/strict';
import type { KernelAnswer, Packet } from '../../src/backends/inspection.ts';
import type { Mode } from '../../src/backends/mode.ts';
import { defaultConfig } from '../../src/config/defaults.ts';
import { fateDifferences } from '../../src/inspect/compare-fates.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Family } from '../../src/model/ip.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { paced } from '../cluster/lab/pace.ts';
import { type AddressBook, addressBooks } from '../contract/address-book.ts';
import type { Cluster } from '../contract/cluster.ts';
import { type NumberedService, namespace, serviceName, servicePortOf } from '../contract/objects.ts';
import { eventuallyEqual } from '../eventually.ts';
import { kubeProxy, run } from '../program/run.ts';
import type { TestPacket } from './packets.ts';
import { predict } from './prediction.ts';

export interface Tampering {
  readonly mode: Mode;
  /** Removes one of the two endpoints of a service's TCP cluster IP from the kernel, as another program would. */
  takeEndpoint(clusterIP: string, family: Family): Promise<unknown>;
  /** The object that a dry run then reports as missing. */
  missing(clusterIP: string): string;
  /** Whether the program repairs it as soon as it can. */
  readonly isRepaired: boolean;
}

const DRY_RUN_MS = paced(60_000);

/** Tampers while the program is halted, so that it can neither notice nor repair it. */
export async function tamper(
  tampering: Tampering,
  cluster: Cluster,
  service: NumberedService,
  family: Family,
): Promise<void> {
  const book = addressBooks[family];
  const { clusterIP } = book.service(service.n);
  const packet: TestPacket = {
    family,
    host: 'pod',
    source: book.hosts.pod,
    destination: clusterIP,
    port: servicePortOf(service.spec),
    transport: 'tcp',
  };
  const before = await predict(packet);
  assert.deepEqual(before.differences, []);
  const { program } = cluster;
  program.signal('SIGSTOP');
  try {
    // In the other family an object may still be missing: not every mode notices changes.
    assert.match((await dryRun(cluster)).stdout, new RegExp(`^${family}, .*: nothing to change$`, 'm'));
    await tampering.takeEndpoint(clusterIP, family);
    const { fate, evidence } = await askKernel(tampering.mode, before.packet, book);
    assert.notDeepEqual(fateDifferences(before.planned.fate, fate), [], evidence.join('\n'));
    const { code, stdout } = await dryRun(cluster);
    assert.equal(code, 2, stdout);
    assert.ok(stdout.includes(`${namespace}/${serviceName(service.n)}:tcp/TCP`), stdout);
    assert.ok(stdout.includes(tampering.missing(clusterIP)), stdout);
  } finally {
    program.signal('SIGCONT');
  }
  if (tampering.isRepaired) await agreed(packet);
}

/** Reads the kernel's answer in this process, because the halted program cannot answer. */
async function askKernel(mode: Mode, packet: Packet, book: AddressBook): Promise<KernelAnswer> {
  const { family, node, podCIDR } = book;
  assert.ok(mode.inspect);
  const inspection = await mode.inspect({
    family,
    config: defaultConfig(),
    gateEnabled: () => false,
    nodeIP: node,
    nodePortAddresses: nodePortAddresses(family, [`${node}/${family === 'IPv4' ? 32 : 128}`]),
    localDetector: { kind: 'cidr', cidr: podCIDR },
    logger: silentLogger,
    clock: systemClock,
  });
  try {
    return await inspection.ask(packet);
  } finally {
    await inspection.close();
  }
}

function dryRun(cluster: Cluster): ReturnType<typeof run> {
  return run(kubeProxy, ['--dry-run', '--config', cluster.writeConfig()], { timeout: DRY_RUN_MS });
}

function agreed(packet: TestPacket): Promise<void> {
  const differences = async () => (await predict(packet)).differences;
  return eventuallyEqual('plan and kernel agree', differences, [], { everyMs: 20 });
}
