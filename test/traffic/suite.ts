import { writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { TrafficReport } from '../../src/inspect/traffic-api.ts';
import { families } from '../../src/model/ip.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import { Landscape } from '../contract/landscape.ts';
import { Scene } from '../contract/scene.ts';
import { inspect } from '../program/served-pages.ts';
import { checkBindings, checkExpiry } from './bindings.ts';
import { checkEnds } from './ends.ts';
import { checkFailures } from './failures.ts';
import { checkFigures } from './figures.ts';
import { FlowWatcher } from './flow-watcher.ts';
import { checkOpenFlows } from './open-flows.ts';
import { services, type TrafficOptions } from './services.ts';

const TIMEOUT_MS = paced(180_000);

/**
 * Sends a known number of connections and bytes, and expects exactly those in the figures and in the list of flows. The
 * real program gets objects from an API server and programs a real kernel.
 */
export function runTraffic(options: TrafficOptions): void {
  const { mode, module, forwardsItself = false, bindingsOutlastTheirTime = false } = options;
  const unavailable = labUnavailable();
  if (unavailable !== undefined) {
    test(`traffic in ${mode} mode`, { skip: unavailable }, () => {});
    return;
  }
  const own = enterNamespace(module);
  describe(`traffic in ${mode} mode`, () => {
    let landscape: Landscape;
    let cluster: Cluster;
    let watcher: FlowWatcher | undefined;
    before(async () => {
      landscape = await Landscape.build(own);
      forgetUnansweredConnections();
      cluster = await Cluster.open(mode, families, landscape);
      await cluster.start({ flags: ['--service-metrics=connections,bytes'] });
      // Keeps the program counting while a test waits.
      watcher = await FlowWatcher.open();
    });
    after(async () => {
      watcher?.close();
      await cluster.close();
      landscape.close();
    });
    for (const family of families) {
      describe(`over ${family}`, () => {
        let scene: Scene;
        before(async () => {
          scene = new Scene(cluster, addressBooks[family]);
          for (const [name, spec] of Object.entries(services)) scene.put(spec, name);
          await cluster.settled();
          await inspect<TrafficReport>('traffic');
        });
        after(() => scene.close());
        test('every view has exactly the connections and bytes that were sent', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkFigures(scene, forwardsItself);
        });
        test('connections that fail are counted by what became of them', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkFailures(scene, landscape, options);
        });
        test('open connections are among the flows, and count as open until they end', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkOpenFlows(scene, forwardsItself);
        });
        test('the end of a TCP connection is told once, with its bytes, when it happens', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkEnds(scene);
        });
        test('clients with affinity are told with their endpoint and the time left', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkBindings(scene);
          if (!bindingsOutlastTheirTime) await checkExpiry(scene);
        });
      });
    }
  });
}

/**
 * Lets conntrack give up early on connections without an answer, which takes two minutes otherwise. It must not give up
 * between two attempts of a client: on a slower machine clients try for longer, and wait longer in between.
 */
function forgetUnansweredConnections(): void {
  writeFileSync('/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent', String(paced(10)));
}
