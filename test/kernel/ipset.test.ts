import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';
import { type IpsetClient, openIpsetClient } from '../../src/kernel/ipset/client.ts';
import type { HashSet, PortBitmap, SetDefinition } from '../../src/kernel/ipset/objects.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';

/** Sets on a real kernel, also verified with `ipset` if it is installed. */

const hasTool = isThere('ipset --version');
const size = { hashSize: 1024, maxElements: 65536 };
const hashTypes: readonly HashSet['type'][] = [
  'hash:ip',
  'hash:ip,port',
  'hash:ip,port,ip',
  'hash:ip,port,net',
];
const ports: PortBitmap = { name: 'kpt-ports', type: 'bitmap:port', from: 0, to: 65535 };

inNamespace(import.meta.url, () => {
  let client: IpsetClient;
  const made: SetDefinition[] = [];
  const create = async <T extends SetDefinition>(set: T): Promise<T> => {
    await client.create(set);
    made.push(set);
    return set;
  };
  before(async () => {
    client = openIpsetClient(await loadLibc(), { clock: systemClock });
  });
  afterEach(async () => {
    for (const { name } of made.splice(0)) await client.destroy(name);
  });
  after(() => client.close());
  const list = async (name: string) => (await client.list(name))?.entries.toSorted();

  test('the kernel speaks a protocol version that the client knows', async () => {
    assert.ok([6, 7].includes(await client.protocol()));
  });

  suite('every type of set', () => {
    for (const family of families) {
      for (const type of hashTypes) {
        test(`${type} ${family} lists what was added`, async () => {
          const set = await create(hash(type, family));
          const entries = examples(type, family);
          assert.deepEqual(await client.add(set, entries), []);
          assert.deepEqual(await list(set.name), entries.toSorted());
          if (hasTool) assertToolAgrees(set, entries);
          assert.deepEqual(await client.delete(set, [...entries.slice(1), ...entries.slice(1)]), []);
          assert.deepEqual(await list(set.name), entries.slice(0, 1));
          await client.flush(set.name);
          assert.deepEqual(await list(set.name), []);
        });
      }
    }

    test('bitmap:port lists what was added', async () => {
      await create(ports);
      assert.deepEqual(await client.add(ports, ['0', '30080', '65535', '30080']), []);
      assert.deepEqual(await list(ports.name), ['0', '30080', '65535']);
      if (hasTool) assertToolAgrees(ports, ['0', '30080', '65535']);
    });
  });

  test('a set is created once, and a second one with other parameters is refused', async () => {
    const set = await create(hash('hash:ip,port', 'IPv4'));
    await client.create(set);
    await client.create({ ...set, hashSize: 64 });
    await assert.rejects(
      client.create({ ...set, maxElements: 100 }),
      /EEXIST \(a set with this name has another type/,
    );
    await assert.rejects(client.create({ ...set, type: 'hash:ip' }), /EEXIST/);
    await assert.rejects(client.create({ ...ports, name: set.name }), /EEXIST/);
  });

  test('sets made by ipset and by the client are interchangeable', {
    skip: !hasTool && 'ipset is not installed',
  }, async () => {
    sh('ipset create kpt-tool hash:ip,port family inet hashsize 1024 maxelem 65536');
    const set = await create({ ...hash('hash:ip,port', 'IPv4'), name: 'kpt-tool' });
    sh('ipset add kpt-tool 10.0.0.1,sctp:80');
    assert.deepEqual(await list(set.name), ['10.0.0.1,sctp:80']);
    const ours = await create(hash('hash:ip,port,net', 'IPv6'));
    sh(`ipset create ${ours.name} hash:ip,port,net family inet6 hashsize 1024 maxelem 65536 -exist`);
  });

  test('thousands of entries are listed as they were added', async () => {
    const set = await create(hash('hash:ip,port', 'IPv4'));
    const entries = Array.from(
      { length: 20_000 },
      (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255},tcp:${1 + i}`,
    );
    assert.deepEqual(await client.add(set, entries), []);
    assert.deepEqual(await list(set.name), entries.toSorted());
    assert.deepEqual(await client.delete(set, entries.slice(1)), []);
    assert.deepEqual(await list(set.name), entries.slice(0, 1));
  });

  test('one refused entry does not keep the others out', async () => {
    const set = await create(hash('hash:ip,port', 'IPv4'));
    const good = Array.from({ length: 1200 }, (_, i) => `10.0.0.1,tcp:${1 + i}`);
    const mixed = [...good.slice(0, 600), 'fd00::1,tcp:80', 'nonsense', ...good.slice(600)];
    const failures = await client.add(set, mixed);
    assert.deepEqual(failures.map(({ entry }) => entry).toSorted(), ['fd00::1,tcp:80', 'nonsense']);
    assert.deepEqual(await list(set.name), good.toSorted());
  });

  test('an addition to a full set is refused with that reason', async () => {
    const set = await create({ ...hash('hash:ip', 'IPv4'), maxElements: 4 });
    const failures = await client.add(
      set,
      Array.from({ length: 20 }, (_, i) => `10.0.0.${i}`),
    );
    assert.match(failures[0]?.error.message ?? '', /^adding 10\.0\.0\.\d+ to ipset .*IPSET_ERR_HASH_FULL/);
    assert.equal(failures.length + ((await list(set.name))?.length ?? 0), 20);
  });

  test('a port outside of a bitmap and a missing set are refused', async () => {
    const narrow = await create({ ...ports, to: 100 });
    const [failure] = await client.add(narrow, ['101']);
    assert.match(failure?.error.message ?? '', /IPSET_ERR_BITMAP_RANGE/);
    await assert.rejects(client.add({ ...ports, name: 'kpt-none' }, ['1']), /ENOENT/);
    await assert.rejects(client.flush('kpt-none'), /ENOENT/);
    assert.equal(await client.list('kpt-none'), undefined);
    assert.equal(await client.destroy('kpt-none'), false);
  });

  test('a set that a rule looks up cannot be destroyed', {
    skip: !canMatch() && 'iptables cannot look sets up here',
  }, async () => {
    const set = await create(hash('hash:ip', 'IPv4'));
    sh(`iptables -A INPUT -m set --match-set ${set.name} src -j ACCEPT`);
    assert.equal((await client.list(set.name))?.references, 1);
    await assert.rejects(client.destroy(set.name), /IPSET_ERR_BUSY \(the set is in use\)/);
    sh('iptables -F INPUT');
    assert.equal(await client.destroy(set.name), true);
  });
});

function hash(type: HashSet['type'], family: Family): HashSet {
  return { name: `kpt-${type.replaceAll(/[:,]/g, '-')}-${family}`, type, family, ...size };
}

function examples(type: HashSet['type'], family: Family): string[] {
  const [ip, other, net] =
    family === 'IPv4' ? ['10.96.0.1', '10.0.0.9', '192.0.2.0/24'] : ['fd00::1', 'fd01::9', 'fd02::/64'];
  if (type === 'hash:ip') return [ip, other];
  const keys = [`${ip},tcp:80`, `${ip},udp:53`, `${other},sctp:65535`];
  if (type === 'hash:ip,port') return keys;
  return keys.flatMap((key) =>
    type === 'hash:ip,port,ip' ? [`${key},${other}`] : [`${key},${net}`, `${key},${other}`],
  );
}

function assertToolAgrees({ name, type }: SetDefinition, entries: readonly string[]): void {
  const saved = sh(`ipset save ${name}`).trim().split('\n');
  assert.ok(saved[0]?.startsWith(`create ${name} ${type} `), saved[0]);
  assert.deepEqual(saved.slice(1).toSorted(), entries.map((entry) => `add ${name} ${entry}`).toSorted());
}

function canMatch(): boolean {
  return isThere('unshare -n iptables -m set --help | grep -q match-set');
}

function isThere(command: string): boolean {
  try {
    sh(command);
    return true;
  } catch {
    return false;
  }
}
