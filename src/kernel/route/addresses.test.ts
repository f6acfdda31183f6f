import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, fakeDone, fakeMessage, overrunError } from '../../../test/kernel/fake-netlink.ts';
import { NetlinkAddresses } from './addresses.ts';

const RTM_NEWADDR = 20;

test('addresses of both families are listed once, with our own end of point-to-point links', async () => {
  const kernel = new FakeNetlink(([request], { portId }) => {
    const to = { sequence: request?.sequence ?? 0, port: portId };
    const address = (family: number, attributes: [type: number, value: number[]][]) =>
      fakeMessage({ type: RTM_NEWADDR, ...to }, (writer) => {
        writer.raw(Uint8Array.of(family, 32, 0, 0, 1, 0, 0, 0));
        for (const [type, value] of attributes) writer.data(type, Uint8Array.from(value));
      });
    const v6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    return [
      address(2, [
        [1, [192, 0, 2, 10]],
        [2, [192, 0, 2, 10]],
      ]),
      address(2, [
        [1, [10, 0, 0, 2]],
        [2, [10, 0, 0, 1]],
      ]),
      address(2, [[2, [192, 0, 2, 10]]]),
      address(10, [[1, v6]]),
      address(10, [[1, [1, 2, 3]]]),
      fakeDone(to),
    ];
  });
  const addresses = new NetlinkAddresses(() => kernel, { clock: new FakeClock() });
  assert.deepEqual(await addresses.list(), ['192.0.2.10', '10.0.0.1', '2001:db8::1']);
});

test('an address watch reports changes and lost notifications', () => {
  const kernels: FakeNetlink[] = [];
  const open = (): FakeNetlink => {
    const kernel = new FakeNetlink();
    kernels.push(kernel);
    return kernel;
  };
  const addresses = new NetlinkAddresses(open, { clock: new FakeClock() });
  let changes = 0;
  addresses.watch(() => changes++, assert.fail);
  const [, events] = kernels;
  assert.deepEqual([...(events?.groups ?? [])], [5, 9]);
  events?.emit(fakeMessage({ type: RTM_NEWADDR, sequence: 0, port: 0 }, (w) => w.raw(new Uint8Array(8))));
  assert.equal(changes, 1);
  events?.emit(overrunError());
  assert.equal(changes, 2);
  addresses.close();
  assert.ok(kernels.every((kernel) => kernel.closed));
});
