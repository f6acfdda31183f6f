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
  /** Kinds of cluster to run the stories in, by their families. */
  readonly clusters: readonly (readonly Family[])[];
  /** Stories that this mode cannot pass, by id, and why. */
  readonly skip: Readonly<Record<string, string>>;
  /** The module that calls: it is started again in a network namespace of its own. */
  readonly module: string;
}

/** Stories of one program told at the same time. */
const CONCURRENCY = 8;
const STORY_TIMEOUT_MS = paced(60_000);
/** The catalogue of cases that the ids C1, C2, … refer to. */
const CASES = 54;

/**
 * What every mode promises about packets, checked from outside: the real program, fed by an API server, programs a
 * real kernel, and hosts in namespaces send packets.
 */
export function runContract(options: ContractOptions): void {
  const unavailable = labUnavailable();
  if (unavailable !== undefined) {
    test(`contract of ${options.mode} mode`, { skip: unavailable });
    return;
  }
  const namespace = enterNamespace(options.module);
  checkStories(options.skip);
  describe(`contract of ${options.mode} mode`, () => {
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
  { mode, skip, clusters }: ContractOptions,
  families: readonly Family[],
  landscape: () => Landscape,
): void {
  const toldIn = (story: Story): readonly Family[] =>
    isBrief ? familiesInBrief(story, families, clusters) : familiesOf(story, families);
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.open(mode, families, landscape());
  });
  after(() => cluster.close());
  const told = stories.filter((story) => toldIn(story).length > 0);
  for (const [key, group] of Map.groupBy(told, (story) => JSON.stringify(story.setting))) {
    const setting = JSON.parse(key) as Setting;
    describe(key === '{}' ? 'with defaults' : `with ${key}`, () => {
      const active = group.some(({ id }) => skip[id] === undefined);
      before(() => (active ? cluster.start(setting) : undefined));
      after(() => (active ? stop(cluster) : undefined));
      const { alone = [], together = [] } = Object.groupBy(group, (story) =>
        story.alone ? 'alone' : 'together',
      );
      describe('together', { concurrency: CONCURRENCY }, () => {
        for (const story of together) tell(story, toldIn(story), skip[story.id], () => cluster);
      });
      if (alone.length === 0) return;
      describe('one by one', () => {
        for (const story of alone) tell(story, toldIn(story), skip[story.id], () => cluster);
      });
    });
  }
}

/**
 * Fails when the program logged an error that no story explains. Some settings lead to complaints about the
 * configuration, some stories have two services ask for one address, and flushed rules may lead to a refused sync.
 */
async function stop(cluster: Cluster): Promise<void> {
  const { program, wiped } = cluster;
  await cluster.stop();
  const errors = program.stderr.split('\n').filter((line) => /^[EF]\d{4} /.test(line));
  const isDue = (line: string): boolean =>
    /configuration may be incomplete|Node port address ignored|Proxy mode ipvs is deprecated/.test(line) ||
    /Object not \(fully\) programmed.* belongs to service port /.test(line) ||
    (wiped && line.includes('Partial sync refused'));
  assert.deepEqual(
    errors.filter((line) => !isDue(line)),
    [],
  );
}

function tell(
  story: Story,
  families: readonly Family[],
  skip: string | undefined,
  cluster: () => Cluster,
): void {
  const title = `${story.id}: ${story.title}`;
  const reason = skip ?? story.unavailable;
  test(title, { timeout: STORY_TIMEOUT_MS, ...(reason !== undefined && { skip: reason }) }, async () => {
    const tellings = families.map((family) => async () => {
      const scene = new Scene(cluster(), addressBooks[family]);
      try {
        await story.tell(scene);
      } finally {
        scene.close();
      }
    });
    if (story.alone) for (const telling of tellings) await telling();
    else await Promise.all(tellings.map((telling) => telling()));
  });
}

/** A suite with two stories of one id, or a skip of none, says something else than it means. */
function checkStories(skip: ContractOptions['skip']): void {
  const ids = stories.map(({ id }) => id);
  assert.deepEqual(ids, [...new Set(ids)], 'every story has an id of its own');
  for (let n = 1; n <= CASES; n++) assert.ok(ids.includes(`C${n}`), `case ${n} of the catalogue is not told`);
  for (const [id, reason] of Object.entries(skip)) {
    assert.ok(ids.includes(id), `no story ${id} to skip`);
    assert.ok(reason.trim() !== '', `the skip of ${id} needs a reason`);
  }
}
