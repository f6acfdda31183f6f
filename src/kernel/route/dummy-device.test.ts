import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, fakeAck, fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { recordedNetlink } from '../../../test/kernel/recorded-netlink.ts';
import { NetlinkFormatError } from '../netlink/reader.ts';
import { type AddressFailure, NetlinkDummyDevices } from './dummy-device.ts';

const name = 'kube-ipvs0';
const recording = readFileSync(join(import.meta.dirname, 'testdata/dummy-device.hex'), 'utf8');

test('dummy device requests and answers match those recorded with a kernel', async () => {
  const { kernel, remaining } = recordedNetlink(recording);
  const devices = new NetlinkDummyDevices(kernel, { clock: new FakeClock() });
  assert.equal(await devices.find(name), undefined);
  await devices.create(name);
  const device = await devices.find(name);
  assert.deepEqual(device, { index: 2, name, kind: 'dummy', isUp: false, isLoopback: false, mtu: 1500 });
  assert.ok(device);
  await assert.rejects(devices.create(name), {
    message: 'creating dummy interface kube-ipvs0: EEXIST (file already exists)',
  });
  assert.deepEqual(await devices.addAddresses(device, ['10.96.0.1', '10.96.0.1', 'fd00::1']), []);
  const gone = ['10.96.0.1', '10.96.0.1', 'fd00::1', 'fd00::1'];
  assert.deepEqual(await devices.removeAddresses(device, gone), []);
  const nowhere = { index: 99, kind: '' };
  assert.deepEqual(messages(await devices.addAddresses(nowhere, ['10.96.0.1', 'fd00::1'])), [
    'adding address 10.96.0.1 to interface 99: ENODEV (no such device)',
    'adding address fd00::1 to interface 99: ENODEV (no such device)',
  ]);
  assert.deepEqual(messages(await devices.removeAddresses(nowhere, ['10.96.0.1', 'fd00::1'])), [
    'deleting address 10.96.0.1 from interface 99: ENODEV (no such device)',
    'deleting address fd00::1 from interface 99: ENODEV (no such device)',
  ]);
  await assert.rejects(devices.remove('lo'), /interface lo is not a dummy interface but of kind ""/);
  assert.equal(remaining(), 0);
});

test('removing a missing interface, or one that disappears meanwhile, succeeds', async () => {
  const dummy = recordedDevice();
  for (const replies of [
    ['absent', false],
    ['goes', false],
    ['there', true],
  ] as const) {
    const kernel = new FakeNetlink(([request], { portId }) => {
      const to = { sequence: request?.sequence ?? 0, port: portId };
      if (replies[0] === 'absent') return [fakeAck(to, 19)];
      if (request?.type === 17) return [fakeAck(to, replies[0] === 'goes' ? 19 : 0)];
      return [fakeMessage({ type: 16, ...to }, (writer) => writer.raw(dummy)), fakeAck(to)];
    });
    const devices = new NetlinkDummyDevices(kernel, { clock: new FakeClock() });
    assert.equal(await devices.remove(name), replies[1], replies[0]);
  }
});

test('an invalid address is refused before any request is sent', async () => {
  const kernel = new FakeNetlink(() => assert.fail());
  const devices = new NetlinkDummyDevices(kernel, { clock: new FakeClock() });
  await assert.rejects(
    devices.addAddresses({ index: 1, kind: '' }, ['10.0.0']),
    /"10\.0\.0" is no IP address/,
  );
});

test('no bytes crash or hang the link decoder', async () => {
  const damage = fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(damage, async (changes) => {
      const payload = recordedDevice();
      for (const [at, value] of changes) payload[at % payload.length] = value;
      const kernel = new FakeNetlink(([request], { portId }) => {
        const to = { sequence: request?.sequence ?? 0, port: portId };
        return [fakeMessage({ type: 16, ...to }, (writer) => writer.raw(payload)), fakeAck(to)];
      });
      const devices = new NetlinkDummyDevices(kernel, { clock: new FakeClock() });
      await devices.find(name).catch((error: unknown) => {
        if (!(error instanceof NetlinkFormatError)) throw error;
      });
    }),
    { numRuns: 1000 },
  );
});

/** The kernel's description of a dummy interface, without the header of its message. */
function recordedDevice(): Uint8Array {
  const line = recording.split('\n').find((text) => text.startsWith('< ') && text.includes('64756d6d79'));
  assert.ok(line);
  return Uint8Array.from(Buffer.from(line.slice(2), 'hex').subarray(16));
}

function messages(failures: readonly AddressFailure[]): string[] {
  return failures.map(({ error }) => error.message);
}
