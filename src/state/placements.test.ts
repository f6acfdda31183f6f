import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpointObjects, slice, webPort } from '../../test/cluster/objects.ts';
import { packNames } from '../model/pod-names.ts';
import { placementsOf } from './placements.ts';

const port = webPort();

function packed(...names: string[]): { readonly pods: string } {
  const pods = packNames(names);
  assert.ok(pods !== undefined);
  return { pods };
}

test('endpoints have the pod, node and zone of their slice', () => {
  const [first, second] = endpointObjects('1R@n1 2R@');
  assert.ok(first && second);
  const endpoints = [{ ...first, zone: 'za' }, second, { ...second, address: 'nonsense' }];
  const { byEndpoint } = placementsOf(
    [slice('s', '', { endpoints, ...packed('web-1', 'other/x', 'y') })],
    port,
  );
  assert.deepEqual(
    [...byEndpoint],
    [
      ['10.1.0.1:80', { pod: 'a/web-1', node: 'n1', zone: 'za' }],
      ['10.1.0.2:80', { pod: 'other/x' }],
    ],
  );
});

test('only slices with the port count', () => {
  const others = [
    { name: 'grpc', protocol: 'TCP', port: 80 },
    { name: 'http', protocol: 'UDP', port: 80 },
    { name: 'http', protocol: 'TCP' },
  ];
  const slices = others.map((one) => slice('s', '1R@', { ports: [one], ...packed('web-1') }));
  assert.equal(placementsOf(slices, port).byEndpoint.size, 0);
});

test('pods at one address are told apart by their port', () => {
  const slices = [80, 81].map((number) =>
    slice(`s${number}`, '1R@', {
      ports: [{ name: 'http', protocol: 'TCP', port: number }],
      ...packed(`web-${number}`),
    }),
  );
  const { byEndpoint } = placementsOf(slices, port);
  assert.deepEqual(
    [...byEndpoint].map(([endpoint, { pod }]) => [endpoint, pod]),
    [
      ['10.1.0.1:80', 'a/web-80'],
      ['10.1.0.1:81', 'a/web-81'],
    ],
  );
});

test('of several pods at one endpoint, the last that is not terminating is shown', () => {
  const podOf = (...states: string[]) => {
    const slices = states.map((state, i) => slice(`s${i}`, `1${state}@`, packed(`web-${i}`)));
    return placementsOf(slices, port).byEndpoint.get('10.1.0.1:80')?.pod;
  };
  assert.equal(podOf('T', 'R'), 'a/web-1');
  assert.equal(podOf('R', 'T'), 'a/web-0');
  assert.equal(podOf('T', 'T'), 'a/web-0');
  assert.equal(podOf('R', 'R'), 'a/web-1');
});

test('an earlier answer is returned while the slices are the same', () => {
  const slices = [slice('s', '1R@', packed('web-1'))];
  const known = placementsOf(slices, port);
  assert.equal(placementsOf([...slices], port, known), known);
  const renamed = placementsOf([slice('s', '1R@', packed('web-2'))], port, known);
  assert.equal(renamed.byEndpoint.get('10.1.0.1:80')?.pod, 'a/web-2');
});
