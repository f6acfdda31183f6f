import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Family } from '../../src/model/ip.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { addressBooks } from './address-book.ts';
import { familiesInBrief, familiesOf, isBrief } from './brief.ts';
import { Cluster } from './cluster.ts';
import { Landscape } from './landscape.ts';
import { Scene } from './scene.ts';
import { stories } from './stories/all.ts';
import type { Setting, Story } from './story.ts';

export interface ContractOptions {
  /** `--proxy-mode`. */
  readonly mode: string;
  /** Further flags of the program. */
  readonly flags?: readonly string[];
  /** Kinds of cluster to run the stories in, by their families. */
  readonly clusters: readonly (readonly Family[])[];
  /** Stories that this mode cannot pass, by id, and why. */
  readonly skip: Readonly<Record<string, string>>;
  /** Why the contract cannot be run here at all. */
  readonly unavailable?: string | undefined;
  /** The calling module, which is started again in a new network namespace. */
  readonly module: string;
}

/** Stories of one program that run at the same time. */
const CONCURRENCY = 8;
const STORY_TIMEOUT_MS = paced(60_000);
/** Number of cases in the catalogue: the ids are C1, C2, … */
const CASES = 54;

/**
 * What every mode promises about packets, checked from outside: the real program, fed by an API server, programs a
 * real kernel, and hosts in namespaces send packets.
 */
export function runContract(options: ContractOptions): void {
  const name = ['contract of', options.mode, 'mode', ...(options.flags ?? [])].join(' ');
  const unavailable = labUnavailable() ?? options.unavailable;
  if (unavailable !== undefined) {
    test(name, { skip: unavailable });
    return;
  }
  const namespace = enterNamespace(options.module);
  checkStories(options.skip);
  describe(name, () => {
    let landscape: Landscape;
    before(async () => {
      landscape = await Landscape.build(namespace);
    });
    after(() => landscape.close());
    for (const families of options.clusters) {
      describe(`in a cluster with ${families.join(' and ')}`, () =>
        tellAll(options, families, () => landscape));
    }
  });
}

function tellAll(
  { mode, flags = [], skip, clusters }: ContractOptions,
  families: readonly Family[],
  landscape: () => Landscape,
): void {
  const familiesFor = (story: Story): readonly Family[] =>
    isBrief ? familiesInBrief(story, families, clusters) : familiesOf(story, families);
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.open(mode, families, landscape());
  });
  after(() => cluster.close());
  const fitting = stories.filter((story) => familiesFor(story).length > 0);
  for (const [key, group] of Map.groupBy(fitting, (story) => JSON.stringify(story.setting))) {
    const setting = JSON.parse(key) as Setting;
    describe(key === '{}' ? 'with defaults' : `with ${key}`, () => {
      const active = group.some(({ id }) => skip[id] === undefined);
      const start = () => cluster.start({ ...setting, flags: [...(setting.flags ?? []), ...flags] });
      let disconnect: (() => void) | undefined;
      before(() => {
        if (active && setting.neighbours) disconnect = landscape().connectNeighbours();
        return active ? start() : undefined;
      });
      after(() => {
        disconnect?.();
        return active ? stop(cluster) : undefined;
      });
      const { alone = [], together = [] } = Object.groupBy(group, (story) =>
        story.alone ? 'alone' : 'together',
      );
      describe('together', { concurrency: CONCURRENCY }, () => {
        for (const story of together) testStory(story, familiesFor(story), skip[story.id], () => cluster);
      });
      if (alone.length === 0) return;
      describe('one by one', () => {
        for (const story of alone) testStory(story, familiesFor(story), skip[story.id], () => cluster);
      });
    });
  }
}

/**
 * Stops the program. Fails when it logged an unexpected error. Expected are errors about the configuration, about two
 * services that claim one address, and, after rules were flushed, about a refused sync.
 */
async function stop(cluster: Cluster): Promise<void> {
  const { program, wiped } = cluster;
  await cluster.stop();
  const errors = program.stderr.split('\n').filter((line) => /^[EF]\d{4} /.test(line));
  const isExpected = (line: string): boolean =>
    /configuration may be incomplete|Node port address ignored|Proxy mode ipvs is deprecated/.test(line) ||
    /Object not \(fully\) programmed.* belongs to service port /.test(line) ||
    (wiped && line.includes('Partial sync refused'));
  assert.deepEqual(
    errors.filter((line) => !isExpected(line)),
    [],
  );
}

function testStory(
  story: Story,
  families: readonly Family[],
  skip: string | undefined,
  cluster: () => Cluster,
): void {
  const title = `${story.id}: ${story.title}`;
  const reason = skip ?? story.unavailable;
  test(title, { timeout: STORY_TIMEOUT_MS, ...(reason !== undefined && { skip: reason }) }, async () => {
    const runs = families.map((family) => async () => {
      const scene = new Scene(cluster(), addressBooks[family]);
      try {
        await story.run(scene);
      } finally {
        scene.close();
      }
    });
    if (story.alone) for (const run of runs) await run();
    else await Promise.all(runs.map((run) => run()));
  });
}

/** Checks that ids are unique, that the catalogue is complete, and that every skip names a story and a reason. */
function checkStories(skip: ContractOptions['skip']): void {
  const ids = stories.map(({ id }) => id);
  assert.deepEqual(ids, [...new Set(ids)], 'every story has an id of its own');
  for (let n = 1; n <= CASES; n++)
    assert.ok(ids.includes(`C${n}`), `case ${n} of the catalogue has no story`);
  for (const [id, reason] of Object.entries(skip)) {
    assert.ok(ids.includes(id), `no story ${id} to skip`);
    assert.ok(reason.trim() !== '', `the skip of ${id} needs a reason`);
  }
}
