import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { ResourceName, Resources } from '../model/objects.ts';
import { type Logger, silentLogger } from '../obs/log.ts';
import { printProblem } from './manifests/documents.ts';
import { type ManifestSource, manifestSource } from './manifests.ts';
import { NodeManager } from './node-manager.ts';
import type { ObjectHandler } from './source.ts';

const all: readonly ResourceName[] = ['nodes', 'serviceCIDRs', 'services', 'endpointSlices'];

/** Records deliveries and checks the previous object of each. */
class Follower implements ObjectHandler {
  readonly objects = new Map<string, Resources[ResourceName]>();
  readonly calls: string[] = [];

  upsert<R extends ResourceName>(
    resource: R,
    object: Resources[R],
    previous: Resources[R] | undefined,
  ): void {
    const id = idOf(resource, object);
    assert.equal(previous, this.objects.get(id), `previous object of ${id}`);
    this.calls.push(`${previous ? 'update' : 'add'} ${id}`);
    this.objects.set(id, object);
  }

  remove<R extends ResourceName>(resource: R, object: Resources[R]): void {
    const id = idOf(resource, object);
    assert.equal(object, this.objects.get(id), `last object of ${id}`);
    this.calls.push(`remove ${id}`);
    this.objects.delete(id);
  }

  synced(resource: ResourceName): void {
    this.calls.push(`synced ${resource}`);
  }

  /** Calls since the last time this was asked. */
  news(): string[] {
    return this.calls.splice(0);
  }
}

function idOf<R extends ResourceName>(resource: R, object: Resources[R]): string {
  return `${resource} ${'namespace' in object ? `${object.namespace}/` : ''}${object.name}`;
}

interface Rig {
  readonly source: ManifestSource;
  readonly follower: Follower;
  readonly logged: string[];
}

async function follow(t: TestContext, path: string, clock: Clock = new FakeClock()): Promise<Rig> {
  const logged: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    info: (message, attributes) => logged.push(`${message} ${JSON.stringify(attributes)}`),
    error: (error, message) => logged.push(`${message}: ${error instanceof Error ? error.message : error}`),
  };
  const source = await manifestSource({ path, nodeName: 'n1', clock, logger });
  t.after(() => source.stop());
  const follower = new Follower();
  source.start(all, follower);
  await Promise.resolve();
  return { source, follower, logged };
}

function folder(t: TestContext, files: Readonly<Record<string, string>> = {}): string {
  const path = mkdtempSync(join(tmpdir(), 'kpt-manifests-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

function service(name: string, clusterIP: string): string {
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {clusterIP: ${clusterIP}}\n`;
}

const node = 'apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n';
const broken = `${service('a', '10.96.0.9')}---\nkind: [\n`;

/** Waits until the source has made this call. */
function delivered({ calls }: Follower, call: string): Promise<void> {
  return eventually(call, () => calls.includes(call), { onTimeout: () => `delivered: ${calls}` });
}

test('manifest files of a directory are read in order, other files are not', async (t) => {
  const path = folder(t, {
    'b.yml': service('b', '10.96.0.2'),
    'a.yaml': `${service('a', '10.96.0.1')}---\n${node}`,
    'c.json': JSON.stringify({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'c' },
      spec: { clusterIP: 'fd00::1' },
    }),
    'notes.txt': 'not a manifest',
    '.hidden.yaml': service('hidden', '10.96.0.9'),
    'd.yaml~': service('backup', '10.96.0.9'),
  });
  mkdirSync(join(path, 'deeper'));
  writeFileSync(join(path, 'deeper', 'x.yaml'), service('deeper', '10.96.0.9'));
  const { source, follower, logged } = await follow(t, path);
  assert.deepEqual(follower.news(), [
    'add nodes n1',
    'synced nodes',
    'synced serviceCIDRs',
    'add services default/a',
    'add services default/b',
    'add services default/c',
    'synced services',
    'synced endpointSlices',
  ]);
  assert.deepEqual(source.problems(), []);
  assert.deepEqual(logged, []);
});

test('a single file is read, and followed when it is replaced', async (t) => {
  const directory = folder(t, { one: service('a', '10.96.0.1'), 'other.yaml': service('x', '10.96.0.7') });
  const { source, follower } = await follow(t, join(directory, 'one'));
  assert.ok(follower.news().includes('add services default/a'));
  writeFileSync(join(directory, 'new'), service('b', '10.96.0.2'));
  renameSync(join(directory, 'new'), join(directory, 'one'));
  await source.refresh();
  assert.deepEqual(follower.news(), ['remove services default/a', 'add services default/b']);
});

test('changes are delivered with the previous object; unchanged objects are not delivered', async (t) => {
  const path = folder(t, { 'a.yaml': `${service('a', '10.96.0.1')}---\n${service('b', '10.96.0.2')}` });
  const { source, follower } = await follow(t, path);
  follower.news();
  writeFileSync(
    join(path, 'a.yaml'),
    `# a comment\n${service('b', '10.96.0.3')}---\n${service('c', '10.96.0.4')}`,
  );
  await source.refresh();
  assert.deepEqual(follower.news(), [
    'remove services default/a',
    'update services default/b',
    'add services default/c',
  ]);
  writeFileSync(join(path, 'a.yaml'), `${service('c', '10.96.0.4')}---\n${service('b', '10.96.0.3')}`);
  await source.refresh();
  assert.deepEqual(follower.news(), []);
  unlinkSync(join(path, 'a.yaml'));
  await source.refresh();
  assert.deepEqual(
    follower.news(),
    ['remove services default/c', 'remove services default/b'].sort().reverse(),
  );
});

test('a file that is not YAML keeps its last content, is reported once with its position, and recovers', async (t) => {
  const path = folder(t, { 'a.yaml': service('a', '10.96.0.1'), 'b.yaml': service('b', '10.96.0.2') });
  const { source, follower, logged } = await follow(t, path);
  follower.news();
  writeFileSync(join(path, 'a.yaml'), broken);
  writeFileSync(join(path, 'b.yaml'), service('b', '10.96.0.3'));
  await source.refresh();
  await source.refresh();
  assert.deepEqual(follower.news(), ['update services default/b']);
  assert.equal(logged.length, 1);
  assert.match(logged[0] ?? '', /^Manifest not in effect: a\.yaml:7:1: /);
  assert.deepEqual(source.problems().map(printProblem), [logged[0]?.replace('Manifest not in effect: ', '')]);
  writeFileSync(join(path, 'a.yaml'), service('a', '10.96.0.8'));
  await source.refresh();
  assert.deepEqual(follower.news(), ['update services default/a']);
  assert.deepEqual(source.problems(), []);
  assert.match(logged[1] ?? '', /^Manifest problems resolved .*a\.yaml:7:1/);
});

test('a file that is not YAML from the start does not affect the others and is used once it is corrected', async (t) => {
  const path = folder(t, { 'a.yaml': broken, 'b.yaml': service('b', '10.96.0.2') });
  const { source, follower } = await follow(t, path);
  assert.deepEqual(
    follower.news().filter((call) => call.includes('services ')),
    ['add services default/b'],
  );
  writeFileSync(join(path, 'a.yaml'), service('a', '10.96.0.1'));
  await source.refresh();
  assert.deepEqual(follower.news(), ['add services default/a']);
});

test('one invalid object of a file is reported, keeps its last valid form, and does not hold back the rest', async (t) => {
  const documents = (...texts: readonly string[]) => texts.join('---\n');
  const a = service('a', '10.96.0.1');
  const badC = service('c', '10.96.0.300');
  const fault =
    'a.yaml:9:19: document 2: Service default/c: spec.clusterIP: want an IP address, got "10.96.0.300"';
  const path = folder(t, { 'a.yaml': documents(a, badC, service('d', '10.96.0.4')) });
  const { source, follower, logged } = await follow(t, path);
  const write = async (text: string) => {
    writeFileSync(join(path, 'a.yaml'), text);
    await source.refresh();
    return follower.news();
  };
  assert.deepEqual(
    follower.news().filter((call) => call.includes('services ')),
    ['add services default/a', 'add services default/d'],
  );
  assert.deepEqual(logged.splice(0), [`Manifest not in effect: ${fault}`]);
  assert.deepEqual(await write(documents(a, service('c', '10.96.0.3'))), [
    'remove services default/d',
    'add services default/c',
  ]);
  assert.deepEqual(source.problems(), []);
  assert.deepEqual(await write(documents(service('a', '10.96.0.5'), badC)), ['update services default/a']);
  assert.deepEqual(source.problems().map(printProblem), [`${fault}; its last valid form stays in use`]);
  assert.deepEqual(await write(a), ['remove services default/c', 'update services default/a']);
  assert.deepEqual(source.problems(), []);
});

test('of two objects with one name the first file wins; the other is used when the first is removed', async (t) => {
  const path = folder(t, {
    '1.yaml': service('a', '10.96.0.1'),
    '2.yaml': `\n\n${service('a', '10.96.0.2')}`,
  });
  const { source, follower, logged } = await follow(t, path);
  const ip = () =>
    (follower.objects.get('services default/a') as Resources['services'] | undefined)?.clusterIP;
  assert.equal(ip(), '10.96.0.1');
  assert.deepEqual(logged, [
    'Manifest not in effect: 2.yaml:3:1: Service default/a is already defined in 1.yaml; this one is ignored',
  ]);
  unlinkSync(join(path, '1.yaml'));
  await source.refresh();
  assert.equal(ip(), '10.96.0.2');
  assert.deepEqual(source.problems(), []);
  writeFileSync(join(path, '2.yaml'), `${service('a', '10.96.0.3')}---\n${service('a', '10.96.0.4')}`);
  await source.refresh();
  assert.equal(ip(), '10.96.0.3');
  assert.match(
    logged.at(-1) ?? '',
    /2\.yaml:6:1: Service default\/a is already defined earlier in this file/,
  );
});

test('Endpoints are used until their Service has an EndpointSlice', async (t) => {
  const endpoints =
    'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\nsubsets: [{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}]}]\n';
  const slice =
    'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nmetadata: {name: web-1, labels: {kubernetes.io/service-name: web}}\n';
  const path = folder(t, { 'a.yaml': endpoints });
  const { source, follower } = await follow(t, path);
  assert.ok(follower.news().includes('add endpointSlices default/web-0-ipv4'));
  writeFileSync(join(path, 'z.yaml'), slice);
  await source.refresh();
  assert.deepEqual(follower.news(), [
    'remove endpointSlices default/web-0-ipv4',
    'add endpointSlices default/web-1',
  ]);
  unlinkSync(join(path, 'z.yaml'));
  await source.refresh();
  assert.deepEqual(follower.news(), [
    'remove endpointSlices default/web-1',
    'add endpointSlices default/web-0-ipv4',
  ]);
});

test('other kinds are logged once', async (t) => {
  const pod = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n';
  const path = folder(t, { 'a.yaml': `${pod}---\n${pod}` });
  const { source, logged } = await follow(t, path);
  writeFileSync(join(path, 'a.yaml'), `${pod}---\n${pod}---\n${service('a', '10.96.0.1')}`);
  await source.refresh();
  assert.deepEqual(logged, [
    'Manifest holds objects that kube-proxy does not use {"file":"a.yaml","ignored":["v1 Pod"]}',
  ]);
});

test('a node without a manifest is delivered with its name only, without a wait', async (t) => {
  const path = folder(t);
  const { source, follower } = await follow(t, path);
  assert.deepEqual(follower.objects.get('nodes n1'), {
    name: 'n1',
    resourceVersion: '',
    labels: {},
    addresses: [],
    podCIDRs: [],
    taintKeys: [],
    deleting: false,
  });
  const manager = new NodeManager({
    nodeName: 'n1',
    needsPodCIDRs: false,
    waits: false,
    clock: new FakeClock(),
    logger: silentLogger,
  });
  source.start(['nodes'], manager);
  assert.deepEqual(await manager.waitForNode(), { nodeIPs: [], podCIDRs: [] });
  const reasons: string[] = [];
  manager.react({ onFatal: (reason) => reasons.push(reason), onZone: () => {} });
  writeFileSync(
    join(path, 'node.yaml'),
    `${node}status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}\n`,
  );
  follower.news();
  await source.refresh();
  assert.deepEqual(follower.news(), ['update nodes n1']);
  assert.deepEqual(reasons, ['IP addresses of node "n1" changed from [] to [10.0.0.1]']);
});

test('a missing path is an error at the start; later the last content stays', async (t) => {
  const directory = folder(t);
  const path = join(directory, 'manifests');
  await assert.rejects(follow(t, path), /cannot read manifests at .*manifests: ENOENT/);
  mkdirSync(path);
  writeFileSync(join(path, 'a.yaml'), service('a', '10.96.0.1'));
  const { source, follower, logged } = await follow(t, path);
  follower.news();
  rmSync(path, { recursive: true });
  await source.refresh();
  assert.deepEqual(follower.news(), []);
  assert.match(logged.at(-1) ?? '', /Manifest not in effect: .*manifests: ENOENT/);
  mkdirSync(path);
  writeFileSync(join(path, 'b.yaml'), service('b', '10.96.0.2'));
  await source.refresh();
  assert.deepEqual(follower.news(), ['remove services default/a', 'add services default/b']);
  assert.deepEqual(source.problems(), []);
});

test('the swap of a ConfigMap volume is followed', async (t) => {
  const path = folder(t);
  for (const [version, ip] of [
    ['..v1', '10.96.0.1'],
    ['..v2', '10.96.0.2'],
  ] as const) {
    mkdirSync(join(path, version));
    writeFileSync(join(path, version, 'a.yaml'), service('a', ip));
  }
  symlinkSync('..v1', join(path, '..data'));
  symlinkSync('..data/a.yaml', join(path, 'a.yaml'));
  const { follower } = await follow(t, path, systemClock);
  assert.ok(follower.calls.includes('add services default/a'));
  symlinkSync('..v2', join(path, '..data_tmp'));
  renameSync(join(path, '..data_tmp'), join(path, '..data'));
  await delivered(follower, 'update services default/a');
});

test('writes are noticed by the watch', async (t) => {
  const path = folder(t);
  const { source, follower } = await follow(t, path, systemClock);
  writeFileSync(join(path, 'a.yaml'), service('a', '10.96.0.1'));
  await delivered(follower, 'add services default/a');
  unlinkSync(join(path, 'a.yaml'));
  await delivered(follower, 'remove services default/a');
  await source.stop();
  follower.news();
  writeFileSync(join(path, 'a.yaml'), service('a', '10.96.0.1'));
  await source.refresh();
  await sleep(300);
  assert.deepEqual(follower.news(), [], 'nothing after stop');
});

test('changes that the kernel does not report are found by polling', async (t) => {
  const elsewhere = folder(t, { 'real.yaml': service('a', '10.96.0.1') });
  const path = folder(t);
  symlinkSync(join(elsewhere, 'real.yaml'), join(path, 'a.yaml'));
  const clock = new FakeClock();
  const { follower } = await follow(t, path, clock);
  writeFileSync(join(elsewhere, 'real.yaml'), `# longer\n${service('b', '10.96.0.2')}`);
  await sleep(300);
  assert.ok(!follower.calls.includes('add services default/b'));
  await clock.advance(10_000);
  await delivered(follower, 'add services default/b');
  // A replaced directory is found the same way, and watched from then on.
  rmSync(path, { recursive: true });
  mkdirSync(path);
  await clock.advance(10_000);
  await sleep(100);
  writeFileSync(join(path, 'c.yaml'), service('c', '10.96.0.3'));
  // Less than until the next poll, so it is the watch that reports it.
  for (let i = 0; i < 8 && !follower.calls.includes('add services default/c'); i++) {
    await sleep(100);
    await clock.advance(1_000);
  }
  await delivered(follower, 'add services default/c');
});

test('a handler that throws is logged, and later changes are delivered', async (t) => {
  const path = folder(t);
  const { source, logged } = await follow(t, path);
  const fragile = new Follower();
  fragile.upsert = () => {
    throw new Error('out of order');
  };
  source.start(['services'], fragile);
  await Promise.resolve();
  for (const name of ['a', 'b']) {
    writeFileSync(join(path, `${name}.yaml`), service(name, '10.96.0.1'));
    await source.refresh();
  }
  assert.deepEqual(logged, Array(2).fill('Failed to deliver objects from manifests: out of order'));
});

type Edit = { file: number; text: string | undefined };

const editOf: fc.Arbitrary<Edit> = fc.record({
  file: fc.nat({ max: 3 }),
  text: fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .array(fc.record({ name: fc.nat({ max: 4 }), ip: fc.nat({ max: 3 }) }), { maxLength: 4 })
        .map((list) => list.map(({ name, ip }) => service(`s${name}`, `10.96.0.${ip}`)).join('---\n')),
    },
    { weight: 2, arbitrary: fc.constant(broken) },
    { weight: 2, arbitrary: fc.constant(undefined) },
  ),
});

test('any edits end in the state that a fresh start would read', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(editOf, { maxLength: 3 }), { maxLength: 6 }), async (rounds) => {
      const path = folder(t);
      const { source, follower, logged } = await follow(t, path);
      const texts = new Map<string, string>();
      const apply = ({ file, text }: Edit) => {
        const name = `${file}.yaml`;
        if (text === undefined) rmSync(join(path, name), { force: true });
        else writeFileSync(join(path, name), text);
        if (text === undefined) texts.delete(name);
        else texts.set(name, text);
      };
      for (const edits of rounds) {
        edits.forEach(apply);
        await source.refresh();
      }
      for (const [name, text] of [...texts]) {
        if (text === broken) apply({ file: Number.parseInt(name, 10), text: service('mended', '10.96.0.7') });
      }
      await source.refresh();
      const fresh = await follow(t, path);
      assert.deepEqual(sorted(follower.objects), sorted(fresh.follower.objects));
      assert.deepEqual(source.problems(), fresh.source.problems());
      assert.deepEqual(
        logged.filter((line) => line.startsWith('Could not')),
        [],
      );
      await Promise.all([source.stop(), fresh.source.stop()]);
    }),
    { numRuns: 40 },
  );
});

function sorted(objects: Follower['objects']): unknown[] {
  return [...objects].sort(([left], [right]) => (left < right ? -1 : 1));
}
