/** Runs the whole program on clusters recorded from upstream: the kernel must hold what upstream wrote. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { RawObject } from '../cluster/apiserver/store.ts';
import { enterNamespace, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { eventuallyEqual } from '../eventually.ts';
import { recordedClusters } from '../plan/recorded-cluster.ts';
import { Site } from '../program/started.ts';
import { flavourUnavailable, useFlavour } from './flavours.ts';
import { chainsOf, comparable, tableOf } from './normalise.ts';

/** Fields of a recording that are not part of plans. */
interface Recording {
  readonly config: Readonly<Record<string, unknown>>;
  readonly node: RawObject;
  readonly objects: readonly RawObject[];
  readonly expect: Readonly<Record<string, readonly string[]>>;
}

const families = { 4: 'iptables', 6: 'ip6tables' } as const;
const tables = ['nat', 'filter', 'mangle'] as const;

const skip = labUnavailable() ?? false;
if (!skip) enterNamespace(import.meta.url);

for (const flavour of ['nft', 'legacy'] as const) {
  const reason = skip || (flavourUnavailable(flavour) ?? false);
  describe(`recorded clusters through the program, iptables-${flavour}`, { skip: reason }, () => {
    let site: Site;
    before(giveAddresses);
    before(() => useFlavour(flavour));
    beforeEach(async () => {
      site = await Site.open();
    });
    afterEach(async () => {
      await site.close();
      flush();
    });
    after(takeAddresses);
    for (const { name } of recordedClusters().filter((_, i) => flavour === 'nft' || i % 4 === 0)) {
      test(name, () => replay(recordingOf(name), site));
    }
  });
}

function recordingOf(name: string): Recording {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../vectors/iptables', name), 'utf8'));
}

async function replay(recording: Recording, site: Site): Promise<void> {
  site.api.put('nodes', recording.node);
  for (const object of recording.objects) {
    site.api.put(object.kind === 'Service' ? 'services' : 'endpointSlices', object);
  }
  const wanted = wantedTables(recording);
  const proxy = await site.start(site.writeConfig(recording.config));
  await eventuallyEqual('what upstream wrote', savedTables, wanted, {
    everyMs: 50,
    onTimeout: () => proxy.stderr,
  });
}

function wantedTables({ expect }: Recording): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(families).flatMap((family) =>
      tables.map((table) => [table + family, comparable(ours(expect[table + family] ?? []))]),
    ),
  );
}

function savedTables(): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(families).flatMap(([family, program]) => {
      const saved = run(`${program}-save`);
      return tables.map((table) => [table + family, comparable(ours(tableOf(saved, table)))]);
    }),
  );
}

/** Leaves out empty built-in chains: whether they exist depends on the flavour. */
function ours(lines: readonly string[]): Map<string, string[]> {
  return new Map(
    [...chainsOf(lines)].filter(([chain, rules]) => chain.startsWith('KUBE-') || rules.length > 0),
  );
}

/** Adds the addresses of the recorded node. */
function giveAddresses(): void {
  run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
  for (const link of ['eth0', 'eth1']) run('ip', 'link', 'set', link, 'up');
  run('ip', 'addr', 'add', '192.168.100.1/24', 'dev', 'eth0');
  run('ip', 'addr', 'add', 'fd00:100::1/64', 'dev', 'eth0', 'nodad');
}

function takeAddresses(): void {
  run('ip', 'link', 'delete', 'eth0');
}

function flush(): void {
  for (const program of Object.values(families)) {
    for (const table of tables) for (const verb of ['-F', '-X']) run(program, '-w', '5', '-t', table, verb);
  }
}
