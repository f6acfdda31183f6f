import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { LogRecorder } from '../../../test/log-recorder.ts';
import { nftablesEngine } from '../../../test/nftables/engine.ts';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import { plainSettings } from '../../../test/nftables/settings.ts';
import { kernelFlowTable, type WithoutFastPath } from '../../conntrack/kernel-table.ts';
import { IPS_OFFLOAD, TrackedFlow } from '../../kernel/ct/tracked-flow.ts';
import { NetlinkError } from '../../kernel/netlink/error.ts';
import { NftBatch } from '../../kernel/nft/batch.ts';
import { describeOperation } from '../../kernel/nft/operation.ts';
import type { Link } from '../../kernel/route/link.ts';
import type { FastPathSettings } from '../../model/fast-path.ts';
import { FastPath, type FastPathOptions } from './fast-path.ts';
import { chooseDevices } from './fast-path-devices.ts';
import { tableOf } from './layout.ts';

const services: FastPathSettings = { scope: 'services', after: 20 };

const link = (name: string, parts: Partial<Link> = {}): Link => ({
  index: 1,
  name,
  kind: 'veth',
  isUp: true,
  isLoopback: false,
  ...parts,
});

/** A fast path over a kernel in memory, whose devices are the links. */
async function harness(fastPath: FastPathSettings | undefined, ...names: readonly string[]) {
  const nft = new FakeNft();
  await nft.commit(new NftBatch().add('table', tableOf('IPv4')));
  nft.batches.length = 0;
  const log = new LogRecorder();
  const state = { links: names.map((name) => link(name)), isCounting: true };
  for (const name of names) nft.devices.add(name);
  let linksChanged = () => {};
  const clock = new FakeClock();
  const options: FastPathOptions = {
    settings: { ...plainSettings, fastPath },
    client: nft,
    links: {
      listLinks: async () => state.links,
      watchLinks: (onChange) => {
        linksChanged = onChange;
        return { close() {} };
      },
    },
    isCounting: () => state.isCounting,
    clock,
    logger: log,
  };
  const path = new FastPath(options);
  const devices = async () => (await nft.listFlowtables()).map((one) => one.devices.toSorted().join());
  /** Operations since the last call. */
  const done = () => {
    const applied = nft.batches.splice(0).filter((one) => one.applied);
    return applied.flatMap(({ batch }) => batch.operations.map(describeOperation));
  };
  return { nft, log, state, clock, options, path, devices, done, linksChanged: () => linksChanged() };
}

test('the fast path is written once, and devices are added without disturbing the others', async () => {
  const { path, state, nft, devices, done } = await harness(services, 'eth0', 'veth1');
  await path.ensure();
  assert.deepEqual(done(), [
    'add flowtable ip kube-proxy fast-path',
    'add flowtable ip kube-proxy fast-path',
    'add chain ip kube-proxy fast-path/forward',
    'add rule ip kube-proxy fast-path/forward',
  ]);
  await path.ensure();
  assert.deepEqual(done(), []);
  nft.devices.add('veth2');
  state.links = [link('eth0'), link('veth2')];
  await path.ensure();
  assert.deepEqual(await devices(), ['eth0,veth2']);
  assert.deepEqual(done(), [
    'add flowtable ip kube-proxy fast-path',
    'delete flowtable ip kube-proxy fast-path',
  ]);
  assert.deepEqual(path.status?.devices, ['eth0', 'veth2']);
});

test('more devices than one operation takes are added in several', async () => {
  const names = Array.from({ length: 300 }, (_, i) => `veth${i}`);
  const { path, devices, done } = await harness(services, ...names);
  await path.ensure();
  assert.deepEqual(await devices(), [names.toSorted().join()]);
  assert.equal(done().filter((text) => text.startsWith('add flowtable')).length, 4);
});

test('a renewal replaces the flowtable and the rule, so that all connections leave the fast path', async () => {
  const { path, devices, done } = await harness(services, 'eth0');
  await path.ensure();
  done();
  await path.renew();
  assert.deepEqual(done(), [
    'flush chain ip kube-proxy fast-path/forward',
    'delete chain ip kube-proxy fast-path/forward',
    'delete flowtable ip kube-proxy fast-path',
    'add flowtable ip kube-proxy fast-path',
    'add flowtable ip kube-proxy fast-path',
    'add chain ip kube-proxy fast-path/forward',
    'add rule ip kube-proxy fast-path/forward',
  ]);
  assert.deepEqual(await devices(), ['eth0']);
});

test('connections leave the fast path when a device gets another MTU, and not when a device comes', async () => {
  const { path, state, nft, done } = await harness(services);
  for (const name of ['eth0', 'veth1']) nft.devices.add(name);
  const isRenewed = async (...links: Link[]) => {
    state.links = links;
    await path.ensure();
    return done().includes('delete flowtable ip kube-proxy fast-path');
  };
  assert.equal(await isRenewed(link('eth0', { mtu: 1500 })), false);
  assert.equal(await isRenewed(link('eth0', { mtu: 1500 }), link('veth1', { mtu: 1400 })), false);
  assert.equal(await isRenewed(link('eth0', { mtu: 1280 }), link('veth1', { mtu: 1400 })), true);
  assert.equal(await isRenewed(link('eth0', { mtu: 1280 }), link('veth1', { mtu: 1400 })), false);
});

test('connections leave the fast path at a start: the MTU of a device may have changed while nobody watched', async () => {
  const { path, nft, done, options } = await harness(services, 'eth0');
  await path.ensure();
  done();
  const next = new FastPath(options);
  await next.ensure();
  assert.ok(done().includes('delete flowtable ip kube-proxy fast-path'));
  assert.equal((await nft.listFlowtables()).length, 1);
  await next.ensure();
  assert.deepEqual(done(), []);
});

test('devices that the kernel refuses are left out and named, and the others take part', async () => {
  const { path, state, devices } = await harness(services, 'eth0');
  state.links = [link('eth0'), link('odd0'), link('lo', { isLoopback: true })];
  await path.ensure();
  assert.deepEqual(await devices(), ['eth0']);
  assert.deepEqual(
    path.status?.leftOut.map(({ device }) => device),
    ['lo', 'odd0'],
  );
});

test('the rule is written again when the kernel has stopped counting packets', async () => {
  const { path, state, done } = await harness(services, 'eth0');
  await path.ensure();
  done();
  state.isCounting = false;
  await path.ensure();
  assert.ok(done().includes('add rule ip kube-proxy fast-path/forward'));
  assert.equal(path.status?.isCounting, false);
});

test('a kernel without flowtables is reported once, and work without a fast path is done at once', async () => {
  const { path, nft, log } = await harness(services, 'eth0');
  nft.wipe();
  nft.refuses = (operation) => operation.kind === 'flowtable';
  await path.ensure();
  await path.ensure();
  assert.equal(path.status?.isInUse, false);
  assert.match(path.status?.reason ?? '', /^this kernel has no flowtables/);
  assert.equal(log.lines.filter(({ error }) => error).length, 1);
  let isDone = false;
  await path.without(async () => {
    isDone = true;
  });
  assert.ok(isDone);
});

test('what the kernel refuses for now is tried again, and meanwhile nothing is left of the fast path', async () => {
  const { path, nft, clock, devices } = await harness(services, 'eth0');
  await path.ensure();
  const watch = path.watch(() => void path.ensure());
  nft.refuses = ({ verb, kind }) => verb === 'add' && kind === 'chain';
  await path.renew();
  assert.deepEqual([await devices(), path.status?.isInUse], [[], false]);
  assert.doesNotMatch(path.status?.reason ?? '', /has no flowtables/);
  nft.refuses = () => false;
  await clock.advance(60_000);
  await new Promise(setImmediate);
  assert.deepEqual([await devices(), path.status?.isInUse], [['eth0'], true]);
  await watch.close();
});

test('work without the fast path is done while there is none, and it is there again afterwards, also after a failure', async () => {
  const { path, devices, clock } = await harness(services, 'eth0');
  await path.ensure();
  let meanwhile: string[] = ['not done'];
  const working = path.without(async () => {
    meanwhile = await devices();
    throw new Error('no luck');
  });
  await Promise.all([assert.rejects(working, /no luck/), clock.advance(1000)]);
  assert.deepEqual(meanwhile, []);
  assert.deepEqual(await devices(), ['eth0']);
});

/**
 * Deletes stale UDP flows of a table that holds one, on the fast path. As kernels before 6.4, it does not delete the entry
 * while there is a flowtable.
 */
function sweepBusyTable(nft: FakeNft, withoutFastPath: WithoutFastPath) {
  const answers: string[] = [];
  const client: Parameters<typeof kernelFlowTable>[0] = {
    forEachFilteredFlow: async (_, visitor) =>
      visitor.flow(Object.assign(new TrackedFlow(), { protocol: 17, status: IPS_OFFLOAD })),
    deleteFlows: async (flows) => {
      const isBusy = (await nft.listFlowtables()).length > 0;
      answers.push(isBusy ? 'EBUSY' : 'deleted');
      const error = new NetlinkError('delete', { errno: 16, text: '' });
      return isBusy
        ? { deleted: 0, failures: flows.map((flow) => ({ flow, error })) }
        : { deleted: flows.length, failures: [] };
    },
    close: () => {},
  };
  const facts = () => ({ ordinary: undefined, stream: undefined });
  const table = kernelFlowTable(client, 'IPv4', facts, withoutFastPath);
  return { answers, done: table.sweep({ isStale: () => true, onDeleted: () => {} }) };
}

test('a stale flow that the kernel keeps because it is on the fast path is deleted, between syncs', async () => {
  const { nft, clock, devices, options } = await harness(services, 'eth0');
  const engine = nftablesEngine({ ...options, fastPath: options });
  const sync = () => engine.sync({ plans: new Map(), changed: 'all', serviceCIDRs: [], totalEndpoints: 0 });
  await sync();
  assert.deepEqual(await devices(), ['eth0']);
  const sweep = sweepBusyTable(nft, (work) => engine.withoutFastPath(work));
  await Promise.all([sweep.done, sync(), clock.advance(1000)]);
  assert.deepEqual(sweep.answers, ['EBUSY', 'deleted']);
  assert.deepEqual(await devices(), ['eth0']);
  await engine.close();
});

test('without the flag, what an earlier start left is removed, and nothing else is written', async () => {
  const { path, nft, done } = await harness(undefined, 'eth0');
  await path.ensure();
  assert.deepEqual(done(), []);
  nft.devices.add('eth0');
  const earlier = await harness(services, 'eth0');
  await earlier.path.ensure();
  const after = new FastPath({ ...earlier.options, settings: plainSettings });
  await after.ensure();
  assert.deepEqual([await earlier.devices(), earlier.nft.chainNames, after.status], [[], [], undefined]);
});

test('without the flag, a renewal asks the kernel nothing', async () => {
  const { path, nft } = await harness(undefined, 'eth0');
  let lists = 0;
  nft.listFlowtables = nft.listChains = async () => {
    lists++;
    return [];
  };
  await path.renew();
  assert.equal(lists, 0);
  await path.ensure({ anew: true });
  assert.equal(lists, 2);
});

test('a burst of changes of interfaces is looked at once', async () => {
  const { path, clock, linksChanged } = await harness(services, 'eth0');
  let looks = 0;
  const watch = path.watch(() => looks++);
  for (let i = 0; i < 5; i++) linksChanged();
  await clock.advance(1000);
  assert.equal(looks, 1);
  linksChanged();
  await clock.advance(1000);
  assert.equal(looks, 2);
  linksChanged();
  await watch.close();
  await clock.advance(1000);
  assert.equal(looks, 2);
});

test('bridges and bonds take part as a whole; interfaces that get no forwarded packets do not', () => {
  const { devices, leftOut } = chooseDevices([
    link('lo', { isLoopback: true, kind: '' }),
    link('cni0', { index: 7, kind: 'bridge' }),
    link('veth1', { master: 7 }),
    link('veth2', { master: 99 }),
    link('tunl0', { isUp: false, kind: 'ipip' }),
    link('kube-ipvs0', { isUp: false, kind: 'dummy' }),
    link('eth0', { kind: '' }),
  ]);
  assert.deepEqual(devices, ['cni0', 'eth0']);
  assert.deepEqual(
    leftOut.map(({ device, reason }) => `${device}: ${reason}`),
    [
      'kube-ipvs0: dummy',
      'lo: loopback',
      'tunl0: down',
      'veth1: part of cni0',
      'veth2: part of interface 99',
    ],
  );
});
