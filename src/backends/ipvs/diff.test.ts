import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServicePortParts } from '../../../test/cluster/objects.ts';
import { planOf } from '../../../test/cluster/plans.ts';
import { settings } from '../../../test/ipvs/harness.ts';
import { formatRealServer, formatVirtualServer, type VirtualServer } from '../../kernel/ipvs/objects.ts';
import { parseCIDR } from '../../model/ip.ts';
import { CurrentState } from './current.ts';
import { DesiredState } from './desired.ts';
import {
  type DiffOptions,
  diffServers,
  diffShared,
  everything,
  type ServerChanges,
  type SharedChanges,
} from './diff.ts';
import type { IpvsSettings } from './settings.ts';

const server: VirtualServer = {
  address: '10.96.0.1',
  port: 80,
  protocol: 'TCP',
  scheduler: 'rr',
  flags: 0,
  timeout: 0,
  netmask: 0xffffffff,
};

/** A kernel with these virtual servers; real servers of the first as `address=weight`. */
function currentOf(servers: readonly VirtualServer[], ...reals: readonly string[]): CurrentState {
  const current = new CurrentState();
  for (const one of servers) current.servers.set(formatVirtualServer(one), { server: one, reals: new Map() });
  const [first] = current.servers.values();
  for (const text of reals) {
    const [address = '', weight] = text.split('=');
    const real = { address, port: 8080, weight: Number(weight) };
    first?.reals.set(formatRealServer(real), real);
  }
  current.addresses.add('10.96.0.1');
  return current;
}

interface Scene {
  readonly current: CurrentState;
  readonly parts?: Partial<ServicePortParts>;
  readonly endpoints?: readonly string[];
  readonly settings?: Partial<IpvsSettings>;
  readonly options?: Partial<DiffOptions>;
}

function changesOf(scene: Scene): ServerChanges & SharedChanges {
  const { current, parts = {}, endpoints = [], options } = scene;
  const desired = new DesiredState({ ...settings, ...scene.settings });
  const plan = planOf(
    { clusterIP: '10.96.0.1', ...parts },
    endpoints.map((ip) => ({ ip })),
  );
  desired.place(plan.port.key, plan);
  const scope = everything(current, desired);
  return {
    ...diffServers(current, desired, scope.servers, {
      isDraining: () => false,
      resetWeights: false,
      ...options,
    }),
    ...diffShared(current, desired, scope),
  };
}

/** Verbs for virtual servers and for real servers, in words. */
function words({ servers, deleteServers }: ServerChanges): string[] {
  return [
    ...servers.flatMap(({ action, key, bind, add, restore, remove }) => [
      ...(action === 'keep' ? [] : [`${action} ${key}`]),
      ...(bind ? [`bind ${key}`] : []),
      ...add.map(({ address }) => `add ${address}`),
      ...restore.map(({ address }) => `restore ${address}`),
      ...remove.map(({ address }) => `remove ${address}`),
    ]),
    ...deleteServers.map((one) => `delete ${formatVirtualServer(one)}`),
  ];
}

test('what is as it should be does not appear', () => {
  assert.deepEqual(
    words(changesOf({ current: currentOf([server], '10.244.0.1=1'), endpoints: ['10.244.0.1'] })),
    [],
  );
});

test('a virtual server that is missing, one that differs, and real servers of each kind', () => {
  const endpoints = ['10.244.0.1'];
  assert.deepEqual(words(changesOf({ current: new CurrentState(), endpoints })), [
    'add 10.96.0.1:80/TCP',
    'bind 10.96.0.1:80/TCP',
    'add 10.244.0.1',
  ]);
  const current = currentOf([server], '10.244.0.1=1', '10.244.0.2=1');
  assert.deepEqual(words(changesOf({ current, endpoints, parts: { affinitySeconds: 600 } })), [
    'edit 10.96.0.1:80/TCP',
    'remove 10.244.0.2',
  ]);
  assert.deepEqual(words(changesOf({ current, endpoints, settings: { scheduler: 'lc' } })), [
    'edit 10.96.0.1:80/TCP',
    'remove 10.244.0.2',
  ]);
});

test('another affinity timeout is an update in place', () => {
  const sticky = { ...server, flags: 1, timeout: 10_800 };
  const scene = { current: currentOf([sticky], '10.244.0.1=1'), endpoints: ['10.244.0.1'] };
  assert.deepEqual(words(changesOf({ ...scene, parts: { affinitySeconds: 600 } })), [
    'edit 10.96.0.1:80/TCP',
  ]);
  assert.deepEqual(words(changesOf({ ...scene, parts: { affinitySeconds: 10_800 } })), []);
});

test('flags alone are a reason to update', () => {
  assert.deepEqual(words(changesOf({ current: currentOf([{ ...server, flags: 0x10 }]) })), [
    'edit 10.96.0.1:80/TCP',
  ]);
});

test('foreign virtual servers go, unless they are excluded', () => {
  const foreign = { ...server, address: '10.1.1.1' };
  const current = currentOf([server, foreign]);
  assert.deepEqual(words(changesOf({ current })), ['delete 10.1.1.1:80/TCP']);
  const excludeCIDRs = ['10.1.1.0/24'].flatMap((text) => parseCIDR(text) ?? []);
  assert.deepEqual(words(changesOf({ current, settings: { excludeCIDRs } })), []);
});

test('weights are an administrator’s affair, except that a restart gives back what it took', () => {
  const scene = {
    current: currentOf([server], '10.244.0.1=0', '10.244.0.2=5'),
    endpoints: ['10.244.0.1', '10.244.0.2'],
  };
  assert.deepEqual(words(changesOf(scene)), []);
  assert.deepEqual(words(changesOf({ ...scene, options: { resetWeights: true } })), [
    'restore 10.244.0.1',
    'restore 10.244.0.2',
  ]);
});

test('what drains is not removed again, and comes back when it is wanted', () => {
  const current = currentOf([server], '10.244.0.1=0');
  const options = { isDraining: () => true };
  assert.deepEqual(words(changesOf({ current, options })), []);
  assert.deepEqual(words(changesOf({ current, options, endpoints: ['10.244.0.1'] })), ['restore 10.244.0.1']);
});

test('real servers that could not be read are left alone', () => {
  const current = currentOf([server]);
  const unreadable = new Error('no answer');
  current.servers.set('10.96.0.1:80/TCP', { server, reals: new Map(), unreadable });
  const { servers } = changesOf({ current, endpoints: ['10.244.0.1'] });
  assert.equal(servers[0]?.unreadable, unreadable);
  assert.deepEqual(servers[0]?.add, []);
});

test('addresses that nobody wants are unbound, excluded or not', () => {
  const current = currentOf([server]);
  current.addresses.add('10.9.9.9');
  const excludeCIDRs = ['10.9.0.0/16'].flatMap((text) => parseCIDR(text) ?? []);
  assert.deepEqual(changesOf({ current, settings: { excludeCIDRs } }).unbind, ['10.9.9.9']);
});

test('entries are compared set by set; a set that could not be listed is left alone', () => {
  const current = currentOf([server]);
  current.sets.set('KUBE-CLUSTER-IP', new Set(['10.96.0.1,tcp:80', '10.96.0.9,tcp:80']));
  current.sets.set('KUBE-LOOP-BACK', new Set());
  assert.deepEqual(changesOf({ current }).sets, [
    { set: 'KUBE-CLUSTER-IP', add: [], remove: ['10.96.0.9,tcp:80'] },
  ]);
  current.sets.set('KUBE-IPVS-IPS', new Set());
  assert.deepEqual(changesOf({ current }).sets.at(-1), {
    set: 'KUBE-IPVS-IPS',
    add: ['10.96.0.1'],
    remove: [],
  });
});
