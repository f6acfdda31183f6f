import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { fateDifferences } from '../../src/inspect/compare-fates.ts';
import { families } from '../../src/model/ip.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import type { Outcome } from '../cluster/lab/traffic.ts';
import { isBrief } from '../contract/brief.ts';
import { Cluster } from '../contract/cluster.ts';
import { Landscape } from '../contract/landscape.ts';
import type { NumberedService } from '../contract/objects.ts';
import type { Setting } from '../contract/story.ts';
import { Turnstile } from '../contract/turnstile.ts';
import { seed } from '../seed.ts';
import { checkAffinity } from './affinity.ts';
import { checkOtherRules, type OtherRuleset, someOtherRulesets } from './other-rules.ts';
import { forbiddenPackets, loopbackPackets, randomPacket, type TestPacket } from './packets.ts';
import { predict } from './prediction.ts';
import { services } from './services.ts';
import { type Tampering, tamper } from './tampering.ts';
import { contradiction } from './verdict.ts';

export interface ExplainOptions {
  /** `--proxy-mode`. */
  readonly mode: string;
  /** The calling module, which is started again in a new network namespace. */
  readonly module: string;
  /** How another program can remove an endpoint, and what explain then reports. */
  readonly tampering?: Tampering;
  /** Rules of other programs to try; by default a few. */
  readonly otherRules?: readonly OtherRuleset[];
}

const packetsPerSetting = isBrief ? 70 : 150;
const AT_ONCE = 8;
const PATIENCE_MS = paced(5_000);
const SILENCE_MS = paced(500);
const TIMEOUT_MS = paced(180_000);

const settings: readonly Setting[] = [
  {},
  { detectLocal: 'InterfaceNamePrefix', nodePortAddresses: ['all'] },
  {
    detectLocal: 'ClusterCIDR',
    masqueradeAll: true,
    serviceCIDRs: 'none',
    nodePortAddresses: ['primary', 'localhost'],
    gates: { KubeProxyNFTablesLocalhostNodePorts: true },
  },
];

/**
 * Compares what explain says about random packets with where they really go. The real program gets objects from an API
 * server and programs a real kernel. The test asks it about each packet, then sends the packet.
 */
export function runExplain({
  mode,
  module,
  tampering,
  otherRules = someOtherRulesets,
}: ExplainOptions): void {
  const unavailable = labUnavailable();
  if (unavailable !== undefined) {
    test(`explain in ${mode} mode`, { skip: unavailable }, () => {});
    return;
  }
  const namespace = enterNamespace(module);
  describe(`explain in ${mode} mode`, () => {
    let landscape: Landscape;
    let cluster: Cluster;
    let placed: NumberedService[];
    const fates = new Set<string>();
    before(async () => {
      landscape = await Landscape.build(namespace);
      cluster = await Cluster.open(mode, families, landscape);
      placed = services.map((spec) => cluster.number(spec));
      for (const service of placed) cluster.put(service);
    });
    after(async () => {
      await cluster.close();
      landscape.close();
    });
    for (const [nth, setting] of settings.entries()) {
      describe(`with ${JSON.stringify(setting)}`, () => {
        before(() => cluster.start(setting));
        after(() => cluster.stop());
        test('packets go where explain says they go', { timeout: TIMEOUT_MS }, async (context) => {
          await sendAll(context, cluster.landscape, packetsTo(placed, seed + nth), fates);
        });
      });
    }
    describe('with a client that has connected before', () => {
      before(() => cluster.start());
      after(() => cluster.stop());
      test('explain names the endpoint that affinity binds it to, and the time left', {
        timeout: TIMEOUT_MS,
      }, async () => {
        const sticky = placed.find(({ spec }) => spec.affinitySeconds !== undefined);
        assert.ok(sticky);
        await checkAffinity(landscape, sticky);
      });
    });
    test('the random packets together had every possible fate', () => {
      assert.deepEqual([...fates].sort(), ['drop', 'forward', 'pass', 'reject']);
    });
    describe('when other programs have rules on the way', () => {
      const counts = { certain: 0, free: 0 };
      before(() => cluster.start());
      after(() => cluster.stop());
      for (const ruleset of otherRules) {
        test(`explain names what stops a packet: ${ruleset.name}`, { timeout: TIMEOUT_MS }, async () => {
          const { faults, certain, free } = await checkOtherRules(ruleset, landscape, placed.slice(1, 4));
          assert.deepEqual(faults, []);
          counts.certain += certain;
          counts.free += free;
        });
      }
      test('of these packets, some were certainly stopped and some met no obstacle', () => {
        assert.ok(counts.certain > 10 && counts.free > 10, JSON.stringify(counts));
      });
    });
    if (!tampering) return;
    describe('when another program changes what is in the kernel', () => {
      before(async () => {
        await cluster.start();
        // The program will be halted; no change may be pending then.
        await cluster.quiet();
      });
      after(() => cluster.stop());
      for (const family of families) {
        test(`explain reports the change and names what is missing: ${family}`, {
          timeout: TIMEOUT_MS,
        }, () => {
          const [service] = placed;
          assert.ok(service);
          return tamper(tampering, cluster, service, family);
        });
      }
    });
  });
}

function packetsTo(placed: readonly NumberedService[], seed: number): TestPacket[] {
  const random = fc.sample(randomPacket(families, placed), { numRuns: packetsPerSetting, seed });
  return [...random, ...forbiddenPackets(families, placed), ...loopbackPackets(families, placed)];
}

/** Sends the packets, and records their fates. */
async function sendAll(
  context: TestContext,
  landscape: Landscape,
  packets: readonly TestPacket[],
  fates: Set<string>,
): Promise<void> {
  const turnstile = new Turnstile(AT_ONCE);
  const seen: Record<string, number> = {};
  const wrong: unknown[] = [];
  const send = async (packet: TestPacket): Promise<void> => {
    const finding = await check(packet, landscape);
    seen[finding.action] = (seen[finding.action] ?? 0) + 1;
    if (finding.faults.length > 0) wrong.push(finding);
  };
  await Promise.all(packets.map((packet) => turnstile.pass(() => send(packet))));
  context.diagnostic(`predicted: ${JSON.stringify(seen)}`);
  for (const fate of Object.keys(seen)) fates.add(fate);
  assert.deepEqual(wrong, [], `KPT_SEED=${seed}`);
}

/** Asks about one packet, sends it, and returns how plan, kernel and reality differ. */
async function check(packet: TestPacket, landscape: Landscape) {
  const report = await predict(packet);
  const { planned, kernel, kernelUnknown } = report;
  const outcome = await sent(packet, landscape, planned.fate.action === 'drop' ? SILENCE_MS : PATIENCE_MS);
  const faults = [
    ...report.differences,
    ...(kernel
      ? fateDifferences(planned.fate, kernel.fate, kernel.bound !== undefined)
      : [kernelUnknown ?? 'the kernel was not asked']),
    contradiction(packet, planned.fate, outcome) ?? [],
    (kernel && contradiction(packet, kernel.fate, outcome)) ?? [],
  ].flat();
  return { action: planned.fate.action, packet, planned, kernel, outcome, faults };
}

async function sent(packet: TestPacket, landscape: Landscape, timeoutMs: number): Promise<Outcome> {
  const { host, source, destination, port, transport } = packet;
  const question = { transport, address: destination, port, timeoutMs };
  const isLoopback = source === destination;
  return landscape.host(host).ask(isLoopback ? question : { ...question, source });
}
