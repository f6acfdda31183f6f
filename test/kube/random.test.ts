import { test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { ResourceName } from '../../src/model/objects.ts';
import type { Fault } from '../cluster/apiserver/faults.ts';
import type { ApiServer } from '../cluster/apiserver/server.ts';
import type { Watch } from '../cluster/apiserver/watch.ts';
import { apiNode, apiService, apiServiceCIDR, apiSlice } from '../cluster/objects.ts';
import { mulberry32 } from '../mulberry32.ts';
import { testBed, testNode } from './harness.ts';

const operations = 2000;
const seeds = Number(process.env.KPT_SEEDS ?? 10);

/** Chooses the next change or fault of a server at random. */
class Chaos {
  readonly #server: ApiServer;
  readonly #random: () => number;

  constructor(server: ApiServer, random: () => number) {
    this.#server = server;
    this.#random = random;
  }

  step(): void {
    const dice = this.#random();
    if (dice < 0.82) this.#edit();
    else if (dice < 0.92) this.#disturbWatch();
    else if (dice < 0.98) this.#failRequest();
    else if (dice < 0.99) this.#server.store.compact();
    else this.#server.disconnect();
  }

  #edit(): void {
    const i = this.#below(30);
    const port = 1 + this.#below(60_000);
    const edit = this.#pick<() => void>([
      () => this.#server.put('services', apiService(`svc-${i}`, port)),
      () =>
        this.#server.put(
          'services',
          apiService(`svc-${i}`, port, { clusterIP: this.#pick(['None', '10.96.0.9']) }),
        ),
      () =>
        this.#server.put(
          'services',
          apiService(`svc-${i}`, port, { labels: this.#label('service-proxy-name') }),
        ),
      () => this.#server.delete('services', 'shop', `svc-${i}`),
      () => this.#server.put('endpointSlices', apiSlice(`svc-${i}`, [`10.1.${i}.${this.#below(250)}`])),
      () => this.#server.put('endpointSlices', apiSlice(`svc-${i}`, ['10.1.0.1', '10.1.0.2'], 1)),
      () => this.#server.delete('endpointSlices', 'shop', `svc-${i}-${this.#below(2)}`),
      () => this.#server.put('nodes', apiNode(this.#pick([testNode, 'node-b']), `z${i}`)),
      () => this.#server.delete('nodes', '', testNode),
      () => this.#server.put('serviceCIDRs', apiServiceCIDR(`cidr-${i % 3}`, `10.${i}.0.0/16`)),
      () => this.#server.delete('serviceCIDRs', '', `cidr-${i % 3}`),
    ]);
    edit();
  }

  #label(name: string): Record<string, string> {
    return this.#random() < 0.5 ? { [`service.kubernetes.io/${name}`]: 'x' } : {};
  }

  #disturbWatch(): void {
    const watches = this.#server.watches();
    if (watches.length === 0) return;
    const watch = this.#pick(watches);
    const past = this.#server.store.changesSince(watch.resource, 0);
    const disturb = this.#pick<(watch: Watch) => void>([
      (w) => w.drop(),
      (w) => w.end(),
      (w) => w.cutInsideEvent(),
      (w) => w.garbage(),
      (w) => w.stall(),
      (w) => w.duplicate(),
      (w) => w.duplicate(),
      (w) => past.length > 0 && w.replay(this.#pick(past)),
      (w) => past.length > 0 && w.replay(this.#pick(past)),
      (w) => w.bookmark(),
      (w) => w.error(410, this.#pick(['Expired', 'Gone']), 'too old'),
      (w) => w.error(500, 'InternalError', 'etcd is tired'),
    ]);
    disturb(watch);
  }

  #failRequest(): void {
    const fault = this.#pick<Fault>([
      { kind: 'status', status: 500 },
      { kind: 'status', status: 410, reason: 'Expired' },
      { kind: 'status', status: 429, retryAfter: 0 },
      { kind: 'status', status: 503 },
      { kind: 'reset' },
      { kind: 'garbage' },
      { kind: 'cut', afterBytes: this.#below(20_000) },
      { kind: 'stall', afterBytes: this.#below(20_000) },
      { kind: 'trickle', bytes: 400, everyMs: 1 },
    ]);
    this.#server.faults.next(fault);
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)] as T;
  }
}

const impatient = { answerMs: 30_000, idleMs: 40 };

for (let seed = 1; seed <= seeds; seed++) {
  test(`after ${operations} random changes and faults the copy equals the server (seed ${seed})`, async () => {
    const random = mulberry32(seed);
    await using bed = await testBed({
      // Each kind of server is asked for both.
      encoding: seed % 8 < 4 ? 'json' : 'protobuf',
      server: {
        streamingLists: (['supported', 'refused', 'supported', 'broken'] as const)[seed % 4] ?? 'supported',
        reportsExpiry: seed % 3 === 0 ? 'event' : 'status',
        ...(seed % 4 === 1 && { gzipAbove: 0 }),
        bookmarkMs: 20,
      },
      lists: seed % 5 < 3 ? 'streamed' : 'pages',
      tuning: { idleMs: 40, firstList: impatient, laterList: impatient, pageSize: 7 },
      random,
    });
    const chaos = new Chaos(bed.server, random);
    for (let i = 1; i <= operations; i++) {
      chaos.step();
      if (i % 5 === 0) await nextTurn();
      // Time for a client to reconnect, so that the next fault affects it.
      if (i % 25 === 0) await pause(5);
      if (i % 200 === 0) await bed.converge();
    }
    const everything: readonly ResourceName[] = ['services', 'endpointSlices', 'nodes', 'serviceCIDRs'];
    await bed.converge(everything);
  });
}
