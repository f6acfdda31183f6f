import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { IpvsUnavailableError } from '../../kernel/ipvs/client.ts';
import type { IpvsOpeners } from '../../kernel/ipvs/openers.ts';
import { NetlinkError } from '../../kernel/netlink/error.ts';
import type { RunProgram } from '../../kernel/program.ts';
import type { Device, DummyDevices } from '../../kernel/route/dummy-device.ts';
import { silentLogger } from '../../obs/log.ts';
import { LinuxServiceDevice, openLinuxIpvs } from './linux-kernel.ts';

const dummy: Device = { index: 7, kind: 'dummy' };
const EEXIST = 17;

suite('the device', () => {
  test('the device is made unless it exists', async () => {
    const calls: string[] = [];
    const create = async (name: string) => void calls.push(name);
    await deviceOn({ find: async () => dummy, create }).ensure();
    assert.deepEqual(calls, []);
    await deviceOn({ find: async () => undefined, create }).ensure();
    assert.deepEqual(calls, ['kube-ipvs0']);
  });

  test('the device may be made by the other family meanwhile', async () => {
    const refuse = (errno: number) => () => Promise.reject(new NetlinkError('creating', { errno, text: '' }));
    const find = async () => undefined;
    await deviceOn({ find, create: refuse(EEXIST) }).ensure();
    await assert.rejects(deviceOn({ find, create: refuse(95) }).ensure(), /EOPNOTSUPP/);
  });

  test('the device has the addresses of its own index', async () => {
    assert.deepEqual(await deviceOn({ find: async () => dummy }).addresses(), ['10.96.0.1', 'fd00::1']);
    await assert.rejects(
      deviceOn({ find: async () => undefined }).addresses(),
      /there is no device kube-ipvs0/,
    );
  });
});

suite('opening', () => {
  test('opening loads the module when the kernel has no IPVS, and tries again', async () => {
    const programs: string[] = [];
    const run: RunProgram = async (program) => {
      programs.push(program);
      return { status: 0, timedOut: false, output: '' };
    };
    const sockets = new Sockets();
    sockets.failures.push(new IpvsUnavailableError());
    const linux = await openLinuxIpvs({
      open: sockets.openers,
      run,
      clock: new FakeClock(),
      logger: silentLogger,
    });
    assert.deepEqual(programs, ['modprobe']);
    linux.close();
    assert.deepEqual(sockets.closed.toSorted(), ['addresses', 'devices', 'ipvs', 'route', 'sets']);
  });

  test('opening closes its sockets when one cannot be opened', async () => {
    const sockets = new Sockets();
    sockets.openers.route = () => assert.fail('no socket');
    await assert.rejects(
      openLinuxIpvs({ open: sockets.openers, run: noProgram, clock: new FakeClock(), logger: silentLogger }),
      /no socket/,
    );
    assert.deepEqual(sockets.closed.toSorted(), ['devices', 'ipvs', 'sets']);
  });

  test('opening fails at once for other reasons', async () => {
    const sockets = new Sockets();
    sockets.failures.push(new Error('EPERM'));
    await assert.rejects(
      openLinuxIpvs({ open: sockets.openers, run: noProgram, clock: new FakeClock(), logger: silentLogger }),
      /EPERM/,
    );
  });
});

const noProgram: RunProgram = () => assert.fail('no program is to be run');

/** Sockets that can do nothing but be closed. */
class Sockets {
  readonly closed: string[] = [];
  readonly failures: Error[] = [];
  readonly openers: { -readonly [K in keyof IpvsOpeners]: IpvsOpeners[K] } = {
    ipvs: async () => {
      const failure = this.failures.shift();
      if (failure) throw failure;
      return this.#socket('ipvs');
    },
    sets: () => this.#socket('sets'),
    devices: () => this.#socket('devices'),
    route: () => this.#socket('route'),
    addresses: () => this.#socket('addresses'),
  };

  #socket<T extends { close(): void }>(name: string): T {
    const socket: { close(): void } = { close: () => void this.closed.push(name) };
    return socket as T;
  }
}

function deviceOn(devices: Partial<DummyDevices>): LinuxServiceDevice {
  const none = () => assert.fail('not expected');
  const all: DummyDevices = {
    find: none,
    create: none,
    remove: none,
    addAddresses: none,
    removeAddresses: none,
    close: none,
    ...devices,
  };
  const address = { prefix: 32, scope: 'global', flags: 0 } as const;
  const listAddresses = async () => [
    { ...address, ip: '192.0.2.1', family: 'IPv4' as const, interfaceIndex: 2 },
    { ...address, ip: '10.96.0.1', family: 'IPv4' as const, interfaceIndex: 7 },
    { ...address, ip: 'fd00::1', family: 'IPv6' as const, interfaceIndex: 7 },
  ];
  return new LinuxServiceDevice(all, { listAddresses });
}
