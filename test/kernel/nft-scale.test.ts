import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NftBatch } from '../../src/kernel/nft/batch.ts';
import { typeOf, types } from '../../src/kernel/nft/fields.ts';
import { openNftClient } from '../../src/kernel/nft/netlink-client.ts';
import type { Element, NftSet } from '../../src/kernel/nft/objects.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace } from '../cluster/lab/namespace.ts';

/** Times are printed for people. The tests assert only that commits succeed and that the event loop keeps running. */

/** A commit of fewer services is so short that on a busy machine the event loop may not run during it. */
const MANY = 10_000;

const table = { family: 'ip', name: 'kube-proxy' } as const;
const frontends: NftSet = {
  table,
  name: 'frontends',
  key: [types.ipv4Addr, types.inetProto, types.inetService],
  data: 'verdict',
};
const endpoints: NftSet = {
  table,
  name: 'endpoints',
  key: [typeOf.ipDaddr, typeOf.l4proto, typeOf.thDport, typeOf.numgenRandom(65536)],
  data: [typeOf.ipDaddr, typeOf.thDport],
};

inNamespace(import.meta.url, () => {
  for (const [services, perService] of [
    [1000, 3],
    [10_000, 10],
    [50_000, 10],
  ] as const) {
    test(`${services} services with ${perService} endpoints each are committed and listed`, async () => {
      const client = openNftClient(await loadLibc(), { clock: systemClock });
      const quiet = { event: () => {}, overrun: () => {}, failed: assert.fail };
      client.subscribe(quiet);
      try {
        const objects = elementsOf(services, perService);
        const encoding = performance.now();
        const batch = fill(objects);
        const encoded = performance.now();
        const { result, turns } = await whileTurning(() => client.commit(batch));
        const committed = performance.now();
        assert.ok(turns > 0 || services < MANY, 'the event loop stood still during the commit');
        let count = 0;
        await client.listElements(frontends, (some, restarted) => {
          count = restarted ? 0 : count + some.length;
        });
        assert.equal(count, services);
        const megabytes = (result.bytes / 1e6).toFixed(1);
        const [encode, commit] = [encoded - encoding, committed - encoded].map(Math.round);
        console.log(
          `measured: ${services} x ${perService}: ${megabytes} MB, encode ${encode} ms, commit ${commit} ms`,
        );
        await client.commit(new NftBatch().delete('table', table));
      } finally {
        client.close();
      }
    });
  }
});

function fill(objects: ReturnType<typeof elementsOf>): NftBatch {
  return new NftBatch()
    .add('table', table)
    .add('chain', { table, name: 'pick' })
    .add('set', frontends)
    .add('set', endpoints)
    .addElements(frontends, objects.frontends)
    .addElements(endpoints, objects.endpoints);
}

function elementsOf(services: number, perService: number): { frontends: Element[]; endpoints: Element[] } {
  const found = { frontends: [] as Element[], endpoints: [] as Element[] };
  const verdict = { kind: 'goto', chain: 'pick' } as const;
  for (let s = 0; s < services; s++) {
    const frontend = [10, 96 + (s >> 16), s >> 8, s, 6, 0, 0, 0, 0, 80, 0, 0];
    found.frontends.push({ key: Uint8Array.from(frontend), verdict });
    for (let e = 0; e < perService; e++) {
      const key = Uint8Array.from([...frontend, e, 0, 0, 0]);
      found.endpoints.push({ key, data: Uint8Array.of(10, 244, s >> 8, s, 31, 144, 0, 0) });
    }
  }
  return found;
}

/** Counts the turns of the event loop while something runs. */
async function whileTurning<T>(run: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  try {
    return { result: await run(), turns };
  } finally {
    clearInterval(timer);
  }
}
