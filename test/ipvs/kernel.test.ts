import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';
import { deviceName } from '../../src/backends/ipvs/kernel.ts';
import { type LinuxIpvs, openLinuxIpvs } from '../../src/backends/ipvs/linux-kernel.ts';
import { checkUsable } from '../../src/backends/ipvs/preconditions.ts';
import { type IpvsClient, type IpvsFailure, openIpvsClient } from '../../src/kernel/ipvs/client.ts';
import {
  formatVirtualServer,
  type IpvsOperation,
  isForeign,
  type ListedVirtualServer,
  type RealServer,
  type VirtualServer,
} from '../../src/kernel/ipvs/objects.ts';
import { ipvsOpeners } from '../../src/kernel/ipvs/openers.ts';
import { readRealServerTable } from '../../src/kernel/ipvs/proc-table.ts';
import { runProgram } from '../../src/kernel/program.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { sh } from '../cluster/lab/namespace.ts';
import { onIpvsKernel } from './on-ipvs-kernel.ts';

/** IPVS, its device and its addresses on a real kernel, verified with `ipvsadm` and `ip`. */

const tcp: VirtualServer = {
  address: '10.96.0.1',
  port: 80,
  protocol: 'TCP',
  scheduler: 'rr',
  flags: 0,
  timeout: 0,
  netmask: 0xffffffff,
};
const six: VirtualServer = { ...tcp, address: 'fd00::1', protocol: 'UDP', port: 53, netmask: 128 };
const sctp: VirtualServer = { ...tcp, protocol: 'SCTP', scheduler: 'wrr', flags: 0x1, timeout: 10800 };
const real: RealServer = { address: '10.0.0.1', port: 8080, weight: 1 };

await onIpvsKernel(import.meta.url, () => {
  suite('virtual servers', virtualServers);
  suite('the device', device);
  suite('preconditions', preconditions);
});

function virtualServers(): void {
  let client: IpvsClient;
  before(async () => {
    client = await openIpvsClient(await loadLibc(), { clock: systemClock });
  });
  afterEach(() => client.flush());
  after(() => client.close());

  test('virtual servers are created with real servers, as ipvsadm shows them', async () => {
    const maglev = { ...six, scheduler: 'mh', flags: 0x11, timeout: 600 };
    const operations: IpvsOperation[] = [
      { verb: 'add', server: tcp },
      { verb: 'add', server: maglev },
      { verb: 'add', server: sctp },
      { verb: 'add', server: tcp, real },
      { verb: 'add', server: tcp, real: { ...real, address: '10.0.0.2' } },
      { verb: 'add', server: maglev, real: { address: 'fd01::5', port: 5353, weight: 1 } },
      { verb: 'edit', server: tcp, real: { ...real, weight: 0 } },
    ];
    assert.deepEqual(await client.apply(operations), []);
    assert.deepEqual(sh('ipvsadm -Sn').trim().split('\n').toSorted(), [
      '-A --sctp-service 10.96.0.1:80 -s wrr -p 10800',
      '-A -t 10.96.0.1:80 -s rr',
      '-A -u [fd00::1]:53 -s mh -p 600 -b mh-port',
      '-a -t 10.96.0.1:80 -r 10.0.0.1:8080 -m -w 0',
      '-a -t 10.96.0.1:80 -r 10.0.0.2:8080 -m -w 1',
      '-a -u [fd00::1]:53 -r [fd01::5]:5353 -m -w 1',
    ]);
  });

  test('virtual servers are changed in place and deleted with their real servers', async () => {
    await client.apply([
      { verb: 'add', server: tcp },
      { verb: 'add', server: tcp, real },
    ]);
    const changed = { ...tcp, scheduler: 'lc', flags: 1, timeout: 77 };
    assert.deepEqual(await client.apply([{ verb: 'edit', server: changed }]), []);
    assert.deepEqual(await client.listServers(), [changed]);
    assert.equal((await client.listRealServers(tcp)).length, 1);
    assert.deepEqual(await client.apply([{ verb: 'delete', server: tcp, real }]), []);
    assert.deepEqual(await client.listRealServers(tcp), []);
    assert.deepEqual(await client.apply([{ verb: 'delete', server: tcp }]), []);
    assert.deepEqual(await client.listServers(), []);
  });

  test('virtual servers of other programs are listed, those for firewall marks as foreign', async () => {
    sh('ipvsadm -A -f 7 -s wlc; ipvsadm -A -t 10.9.9.9:443 -s sh -p 300 -M 255.255.255.0');
    sh('ipvsadm -a -t 10.9.9.9:443 -r 10.9.9.1:443 -g -w 3');
    const foreign = { ...tcp, address: '10.9.9.9', port: 443 };
    const servers = await client.listServers();
    assert.deepEqual(servers.filter(isForeign), [
      { foreign: 'firewall mark 7', family: 'IPv4', scheduler: 'wlc' },
    ]);
    assert.deepEqual(
      servers.find((server) => !isForeign(server)),
      { ...foreign, scheduler: 'sh', flags: 1, timeout: 300, netmask: 0xffffff00 },
    );
    const [listed] = await client.listRealServers(foreign);
    assert.deepEqual([listed?.forwarding, listed?.weight], ['route', 3]);
  });

  test('a refused virtual server is reported with the object and the reason', async () => {
    await client.apply([
      { verb: 'add', server: tcp },
      { verb: 'add', server: tcp, real },
    ]);
    const absent = { ...tcp, port: 81 };
    const failures = await client.apply([
      { verb: 'add', server: tcp },
      { verb: 'edit', server: absent },
      { verb: 'add', server: { ...tcp, port: 82, scheduler: 'foo' } },
      { verb: 'add', server: tcp, real },
      { verb: 'edit', server: tcp, real: { ...real, port: 1 } },
      { verb: 'delete', server: absent, real },
    ]);
    assert.deepEqual(messages(failures), [
      'adding virtual server 10.96.0.1:80/TCP: EEXIST (file already exists)',
      'changing virtual server 10.96.0.1:81/TCP: ESRCH (no such process)',
      'adding virtual server 10.96.0.1:82/TCP: ENOENT (no such file or directory)',
      'adding real server 10.0.0.1:8080 to 10.96.0.1:80/TCP: EEXIST (file already exists)',
      'changing real server 10.0.0.1:1 of 10.96.0.1:80/TCP: ENOENT (no such file or directory)',
      'deleting real server 10.0.0.1:8080 from 10.96.0.1:81/TCP: ESRCH (no such process)',
    ]);
  });

  test('thousands of virtual servers are listed as they were written', async () => {
    const servers = Array.from({ length: 1000 }, (_, i): VirtualServer => {
      const family =
        i % 2 === 0 ? { ...tcp, address: `10.97.${i >> 8}.${i & 255}` } : { ...six, address: `fd00::${i}` };
      return { ...family, flags: i % 3 === 0 ? 1 : 0, timeout: i % 3 === 0 ? i + 1 : 0 };
    });
    const reals = (server: VirtualServer): RealServer[] =>
      [1, 2, 3].map((n) => ({
        address: server.netmask === 128 ? `fd01::${n}` : `10.1.0.${n}`,
        port: 80 + n,
        weight: n,
      }));
    const operations = servers.flatMap((server): IpvsOperation[] => [
      { verb: 'add', server },
      ...reals(server).map((one): IpvsOperation => ({ verb: 'add', server, real: one })),
    ]);
    assert.deepEqual(await client.apply(operations), []);
    const byKey = (all: readonly ListedVirtualServer[]) =>
      new Map(all.map((server) => [isForeign(server) ? '' : formatVirtualServer(server), server]));
    assert.deepEqual(byKey(await client.listServers()), byKey(servers));
    for (const server of servers) {
      const listed = (await client.listRealServers(server)).map(({ address, port, weight }) => ({
        address,
        port,
        weight,
      }));
      assert.deepEqual(
        listed.toSorted((a, b) => a.port - b.port),
        reals(server),
      );
    }
    const table = await readRealServerTable();
    const written = servers.map((server) => [formatVirtualServer(server), reals(server)] as const);
    assert.deepEqual(
      new Map([...(table ?? [])].map(([key, all]) => [key, all.toSorted((a, b) => a.port - b.port)])),
      new Map(written),
    );
    await client.flush();
    assert.deepEqual(await client.listServers(), []);
  });

  test('timeouts are set where they are not 0', async () => {
    await client.setTimeouts({ tcp: 901, tcpFin: 121, udp: 301 });
    await client.setTimeouts({ tcp: 0, tcpFin: 125, udp: 0 });
    assert.match(sh('ipvsadm -L --timeout'), /: 901 125 301$/m);
  });
}

function device(): void {
  let linux: LinuxIpvs;
  before(async () => {
    linux = await open();
  });
  after(async () => {
    await linux.devices.remove(deviceName);
    linux.close();
  });

  test('the dummy device is created once and stays down', async () => {
    const { device } = linux.kernelOf('IPv4');
    await Promise.all([device.ensure(), linux.kernelOf('IPv6').device.ensure()]);
    await device.ensure();
    assert.match(sh(`ip -d link show ${deviceName}`), /<BROADCAST,NOARP>.* state DOWN[\s\S]*\bdummy\b/);
  });

  test('addresses of the dummy device make the node accept packets', async () => {
    const { device, nodeAddresses } = linux.kernelOf('IPv4');
    await device.ensure();
    sh('ip address add 192.0.2.5/32 dev lo');
    assert.deepEqual(await device.bind(['10.96.0.1', 'fd00::1']), []);
    assert.deepEqual(await device.bind(['10.96.0.1', '10.96.0.2']), []);
    assert.deepEqual([...(await device.addresses())].toSorted(), ['10.96.0.1', '10.96.0.2', 'fd00::1']);
    assert.match(sh(`ip route get 10.96.0.2`), /^local 10\.96\.0\.2/);
    assert.match(sh(`ip -6 route show table local`), /local fd00::1 dev kube-ipvs0/);
    const others = await nodeAddresses();
    assert.ok(others.includes('192.0.2.5') && !others.includes('10.96.0.1') && !others.includes('fd00::1'));
    assert.deepEqual(await device.unbind(['10.96.0.1', '10.96.9.9', 'fd00::1']), []);
    assert.deepEqual(await device.addresses(), ['10.96.0.2']);
  });

  test('the device is removed only if it is a dummy', async () => {
    assert.equal(await linux.devices.remove(deviceName), true);
    assert.equal(await linux.devices.remove(deviceName), false);
    await assert.rejects(linux.kernelOf('IPv4').device.bind(['10.96.0.1']), /there is no device kube-ipvs0/);
    sh(`ip link add ${deviceName} type veth peer name kpt-peer`);
    await assert.rejects(linux.devices.remove(deviceName), /not a dummy interface but of kind "veth"/);
    sh(`ip link del ${deviceName}`);
  });
}

function preconditions(): void {
  let linux: LinuxIpvs;
  before(async () => {
    linux = await open();
  });
  after(() => linux.close());

  test('the preconditions hold with every scheduler of this kernel and leave nothing behind', async () => {
    for (const scheduler of ['rr', 'wrr', 'lc', 'sh', 'mh']) await checkUsable(linux, scheduler);
    assert.deepEqual(await linux.ipvs.listServers(), []);
  });

  test('the preconditions fail with a scheduler that the kernel lacks', async () => {
    await assert.rejects(
      checkUsable(linux, 'foo'),
      /scheduler foo is unusable: .*198\.51\.100\.0:20000.*ENOENT/,
    );
    assert.deepEqual(await linux.ipvs.listServers(), []);
  });
}

async function open(): Promise<LinuxIpvs> {
  return openLinuxIpvs({
    open: await ipvsOpeners(systemClock),
    run: runProgram,
    clock: systemClock,
    logger: silentLogger,
  });
}

function messages(failures: readonly IpvsFailure[]): string[] {
  return failures.map(({ error }) => error.message);
}
