/** Removal of stale flows among 200,000. Times are printed for people; the tests assert none. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Backend } from '../../src/backends/backend.ts';
import { kernelFlowTable } from '../../src/conntrack/kernel-table.ts';
import { ConntrackReconciler } from '../../src/conntrack/reconciler.ts';
import { type ConntrackClient, openConntrackClient } from '../../src/kernel/ct/client.ts';
import { type KernelInterfaces, openKernel } from '../../src/kernel/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { formatIP } from '../../src/model/ip.ts';
import type { EndpointSliceObject, ServiceObject } from '../../src/model/objects.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { silentLogger } from '../../src/obs/log.ts';
import type { FamilyProxier } from '../../src/proxier/family-proxier.ts';
import { inNamespace } from '../cluster/lab/namespace.ts';
import { eventually, eventuallyEqual } from '../eventually.ts';
import { clusterIPOf, endpointOf, flowsLeftOf, services, stale, total } from './flow-crowd.ts';
import { nftablesIn, proxierOf, tableFactsHere, udpService, udpSlice } from './udp-proxier.ts';

const CONNTRACK = '/proc/sys/net/netfilter/nf_conntrack';
/** Far more than the pass needs, far less than the whole table in memory. */
const MEMORY_CEILING = 64e6;
const SYNCS_BESIDE = 3;

const room = Number(readFileSync(`${CONNTRACK}_max`, 'utf8'));
const skip = room > total ? false : `needs nf_conntrack_max above ${total}, has ${room}`;

inNamespace(import.meta.url, () => {
  let kernel: KernelInterfaces;
  let flows: ConntrackClient;
  let proxier: FamilyProxier;
  let failure: Error | undefined;
  let received = 0;
  let deleted = 0;
  /** What happened, in order. */
  const log: ('sync' | 'failure' | 'pass')[] = [];

  before(async () => {
    if (skip) return;
    execFileSync(process.execPath, [new URL('flow-crowd.ts', import.meta.url).pathname]);
    kernel = await openKernel(systemClock);
    const onDatagram = (_direction: string, bytes: Uint8Array) => {
      received += bytes.length;
    };
    flows = openConntrackClient(await loadLibc(), { clock: systemClock, onDatagram });
    proxier = makeProxier();
    for (let i = 0; i < services; i++) proxier.updateService(undefined, dnsService(i));
    for (let i = 0; i < services; i++) proxier.updateSlice(dnsSlice(i, [endpointOf(i)]), false);
  });
  after(async () => {
    await proxier?.stop();
    kernel?.close();
  });

  test('exactly the stale flows are deleted, in little memory, beside other work and other syncs', {
    skip,
  }, async () => {
    assert.equal(count(), total);
    const watch = watchProcess();
    const started = performance.now();
    proxier.start();
    proxier.synced('services');
    proxier.synced('endpointSlices');
    for (let i = 1; i <= SYNCS_BESIDE; i++) {
      await happened('sync', i);
      proxier.updateSlice(dnsSlice(0, [endpointOf(0), `10.244.9.${i}`]), false);
    }
    await happened('pass', 1);
    const { turns, growth } = watch.stop();
    console.log(
      `measured: ${stale} of ${total} deleted in ${Math.round(performance.now() - started)} ms, ` +
        `${(growth / 1e6).toFixed(0)} MB more memory, ${turns} turns of the event loop`,
    );
    const before = log.slice(0, log.indexOf('pass')).filter((event) => event === 'sync');
    assert.ok(before.length > SYNCS_BESIDE, `syncs did not go on during the pass: ${log}`);
    assert.ok(turns > 100, `the event loop turned only ${turns} times`);
    assert.ok(growth < MEMORY_CEILING, `${growth} bytes more memory`);
    await happened('pass', 2);
    await expectLeft(total - stale, () => false);
    assert.ok(deleted >= stale);
  });

  test('a service without endpoints and a deleted one lose their flows, which the kernel finds', {
    skip,
  }, async () => {
    received = 0;
    proxier.updateSlice(dnsSlice(7, []), false);
    proxier.updateService(dnsService(8), undefined);
    // Each of the two has a sync of its own, and so a pass.
    await countBecomes(total - stale - 2 * flowsLeftOf);
    assert.ok(received < 1e6, `${received} bytes were read to find ${2 * flowsLeftOf} flows`);
    const gone = new Set([clusterIPOf(7), clusterIPOf(8)]);
    await expectLeft(total - stale - 2 * flowsLeftOf, (destination) => gone.has(destination));
  });

  test('a failed sync loses no clean-up', { skip }, async () => {
    const before = count();
    failure = new Error('refused');
    proxier.updateService(dnsService(9), undefined);
    await happened('failure', 1);
    assert.equal(count(), before, 'flows are removed only after the kernel has the new rules');
    failure = undefined;
    await countBecomes(before - flowsLeftOf);
    await expectLeft(before - flowsLeftOf, (destination) => destination === clusterIPOf(9));
  });

  function makeProxier(): FamilyProxier {
    const reconciler = new ConntrackReconciler({
      family: 'IPv4',
      table: kernelFlowTable(flows, 'IPv4', tableFactsHere),
      ownAddresses: async () => new Set(['127.0.0.1']),
      duration: { observe: () => log.push('pass') },
      deleted: {
        inc: (_labels, by = 1) => {
          deleted += by;
        },
      },
      clock: systemClock,
      logger: silentLogger,
    });
    return proxierOf(observed(nftablesIn(kernel)), reconciler);
  }

  /** The backend with its syncs logged; on demand it fails before it writes anything. */
  function observed(backend: Backend): Backend {
    return {
      family: backend.family,
      condition: {},
      repairs: { count: 0, wrongMs: 0 },
      close: () => backend.close(),
      async sync(request) {
        if (failure) {
          log.push('failure');
          throw failure;
        }
        const result = await backend.sync(request);
        log.push('sync');
        return result;
      },
    };
  }

  async function happened(event: (typeof log)[number], times: number): Promise<void> {
    await eventually(`${event} number ${times}`, () => log.filter((each) => each === event).length >= times, {
      withinMs: 60_000,
      everyMs: 1,
      onTimeout: () => `what did: ${log}`,
    });
  }

  /** Waits for the clean-up, which runs in the background. */
  function countBecomes(expected: number): Promise<void> {
    return eventuallyEqual('flows that are left', count, expected, { withinMs: 60_000 });
  }

  /** Checks the number of remaining flows, and that none of them is stale. */
  async function expectLeft(expected: number, isGone: (destination: string) => boolean): Promise<void> {
    let left = 0;
    await flows.forEachFlow(
      { family: 'IPv4', protocol: 17 },
      {
        flow: ({ original, reply }) => {
          left++;
          const ip = formatIP({ family: 'IPv4', bytes: original.destination });
          if (reply.source[1] === 245 || isGone(ip)) assert.fail(`a stale flow to ${ip} is left`);
        },
        restart: () => {
          left = 0;
        },
      },
    );
    assert.equal(left, expected);
  }
});

function count(): number {
  return Number(readFileSync(`${CONNTRACK}_count`, 'utf8'));
}

/** Counts turns of the event loop and samples memory until stopped. */
function watchProcess(): { stop(): { turns: number; growth: number } } {
  const start = process.memoryUsage.rss();
  let most = start;
  let turns = 0;
  const timer = setInterval(() => {
    turns++;
    most = Math.max(most, process.memoryUsage.rss());
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      return { turns, growth: most - start };
    },
  };
}

function dnsService(i: number): ServiceObject {
  return udpService(`dns-${i}`, clusterIPOf(i));
}

function dnsSlice(i: number, addresses: readonly string[]): EndpointSliceObject {
  return udpSlice(`dns-${i}`, addresses);
}
