import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type IP, parseIP } from '../../model/ip.ts';
import { RuleNotUnderstoodError, type RulePacket } from './rule-match.ts';
import { RuleWalk, type TableEnd } from './rule-walk.ts';
import { SavedTable } from './saved-table.ts';

const packet: RulePacket = {
  family: 'IPv4',
  protocol: 'TCP',
  source: ip('192.0.2.9'),
  destination: ip('10.96.0.1'),
  port: 80,
  interface: 'eth0',
  mark: 0,
  isRewritten: false,
};

test('a random match is followed both ways', async () => {
  const ends = await walk([
    '-m statistic --mode random --probability 0.25 -j DNAT --to-destination 10.0.0.1:80',
    '-m statistic --mode random ! --probability 0.5 -j DNAT --to-destination 10.0.0.2:80',
    '-j DNAT --to-destination 10.0.0.3:80',
  ]);
  assert.deepEqual(
    ends.map(({ to, probability }) => [to, probability]),
    [
      ['10.0.0.1:80', 0.25],
      ['10.0.0.2:80', 0.375],
      ['10.0.0.3:80', 0.375],
    ],
  );
});

test('marks are set, matched and cleared, also bit 31', async () => {
  for (const mark of ['0x4000', '0x80000000']) {
    const ends = await walk([
      `-m mark --mark ${mark}/${mark} -j DROP`,
      `-j MARK --set-xmark ${mark}/${mark}`,
      `-m mark ! --mark ${mark}/${mark} -j DROP`,
      `-j MARK --set-xmark ${mark}/0x0`,
      `-m mark --mark ${mark}/${mark} -j DROP`,
      '-j MASQUERADE --random-fully',
    ]);
    assert.deepEqual(ends, [{ probability: 1, mark: 0, verdict: 'masquerade' }]);
  }
});

const matching = [
  '-s 192.0.2.0/24',
  '! -s 10.0.0.0/8',
  '-d 10.96.0.1/32 -p tcp -m tcp --dport 80',
  '-p tcp -m tcp --dport 79:81',
  '-i eth0',
  '-i eth+',
  '! -i cni+',
  '-m conntrack --ctstate NEW',
  '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT',
  '-m addrtype ! --src-type LOCAL',
  '-m addrtype --dst-type LOCAL',
  '-m physdev ! --physdev-is-in',
  '-m comment --comment "anything" -m nfacct --nfacct-name  n',
  '-m recent --set --name S --mask 255.255.255.255 --rsource',
  '-m set --match-set YES dst,dst',
  '-m set ! --match-set NO dst',
];

for (const text of matching) {
  test(`${text} matches`, async () => {
    assert.deepEqual(verdictsOf(await walk([`${text} -j DROP`])), ['drop']);
  });
}

const differing = [
  '! -s 192.0.2.0/24',
  '-d 10.96.0.2/32',
  '-p udp -m udp --dport 80',
  '-p tcp -m tcp --dport 81',
  '-p tcp -m tcp ! --dport 80',
  '-i eth1',
  '-i cni+',
  '-m conntrack --ctstate INVALID',
  '-m conntrack --ctstate DNAT',
  '-m addrtype --src-type LOCAL',
  '-m set --match-set NO dst',
  '-m ipvs --vaddr 10.96.0.1 --vproto tcp --vport 80',
  '-m ttl --ttl-eq 3 -s 10.0.0.0/8',
];

for (const text of differing) {
  test(`${text} does not match`, async () => {
    assert.deepEqual(verdictsOf(await walk([`${text} -j DROP`])), ['through']);
  });
}

const obscure = [
  '-m ttl --ttl-eq 3 -j DROP',
  '-s 10.0.0.0/255.0.255.0 -j DROP',
  '-o eth0 -j DROP',
  '-m addrtype --dst-type BROADCAST -j DROP',
  '-m statistic --mode nth --every 2 -j DROP',
  '-m set --match-set UNKNOWN dst -j DROP',
  '-j CT --notrack',
  '-j MARK --save-mark',
  '-j DNAT',
];

for (const text of obscure) {
  test(`${text} is not understood, and said so`, async () => {
    await assert.rejects(
      walk([text]),
      (error) =>
        error instanceof RuleNotUnderstoodError &&
        error.evidence.at(-1) === `-t nat -A KUBE-SERVICES ${text}`,
    );
  });
}

test('a jump returns to its chain, a goto does not', async () => {
  const lines = ['-A KUBE-A -m mark --mark 0x1/0x1 -j RETURN', '-A KUBE-A -j MARK --set-xmark 0x1/0x1'];
  assert.deepEqual(verdictsOf(await walk(['-j KUBE-A', '-j DROP'], lines)), ['drop']);
  assert.deepEqual(verdictsOf(await walk(['-g KUBE-A', '-j DROP'], lines)), ['through']);
});

test("only jumps to our chains count in the kernel's", async () => {
  const table = tableOf([
    '-A PREROUTING -j DROP',
    '-A PREROUTING -m weird -j OTHER',
    '-A PREROUTING -j KUBE-SERVICES',
  ]);
  const ruleWalk = walker();
  assert.deepEqual(verdictsOf(await ruleWalk.enter(table, 'PREROUTING', packet)), ['through']);
  assert.deepEqual(ruleWalk.evidence, ['-t nat -A PREROUTING -j KUBE-SERVICES']);
});

test('a client that a list has seen in time goes where it went before', async () => {
  const seen = (seconds: number) => {
    const facts = { isLocal: () => false, isBridged: () => false };
    const secondsSinceSeen = (list: string) => (list === 'S' ? seconds : undefined);
    return new RuleWalk({ ...facts, secondsSinceSeen }, new Set(['KUBE-SERVICES']), new FakeClock());
  };
  const rules = ['-m recent --rcheck --seconds 60 --reap --name S --rsource -j DROP', '-j ACCEPT'];
  const recent = seen(12.5);
  assert.deepEqual(verdictsOf(await recent.enter(serviceTable(rules), 'PREROUTING', packet)), ['drop']);
  assert.equal(recent.secondsLeft, 47.5);
  const late = seen(61);
  assert.deepEqual(verdictsOf(await late.enter(serviceTable(rules), 'PREROUTING', packet)), ['accept']);
  assert.equal(late.secondsLeft, undefined);
});

test('affinity is reported, and a client in no list counts as new', async () => {
  const ruleWalk = walker();
  const rules = ['-m recent --rcheck --seconds 60 --reap --name S --rsource -j DROP', '-j ACCEPT'];
  const ends = await ruleWalk.enter(serviceTable(rules), 'PREROUTING', packet);
  assert.deepEqual(verdictsOf(ends), ['accept']);
  assert.equal(ruleWalk.affinitySeconds, 60);
});

test('a cycle of jumps ends the walk', async () => {
  await assert.rejects(
    walk(['-j KUBE-A'], ['-A KUBE-A -j KUBE-B', '-A KUBE-B -j KUBE-A']),
    /a cycle of jumps/,
  );
  const doubling = Array.from({ length: 40 }, (_, i) => `-A KUBE-${i} -j KUBE-${i + 1}`);
  await assert.rejects(
    walk(['-j KUBE-0'], [...doubling, ...doubling, '-A KUBE-40 -j RETURN']),
    /too many rules/,
  );
});

test('probabilities add up to 1 for any rules', async () => {
  const target = fc.constantFrom('ACCEPT', 'DROP', 'RETURN', 'KUBE-A', 'KUBE-B', 'MARK --set-xmark 0x1/0x1');
  const match = fc.oneof(
    fc.constantFrom('', '-m mark --mark 0x1/0x1 ', '-s 192.0.2.9/32 ', '-s 10.0.0.1/32 '),
    fc.double({ min: 0, max: 1, noNaN: true }).map((p) => `-m statistic --mode random --probability ${p} `),
  );
  const rule = (targets: fc.Arbitrary<string>) =>
    fc.tuple(match, targets).map(([text, to]) => `${text}-j ${to}`);
  const leaf = rule(fc.constantFrom('ACCEPT', 'DROP', 'RETURN', 'MARK --set-xmark 0x0/0x1'));
  await fc.assert(
    fc.asyncProperty(fc.array(rule(target)), fc.array(leaf), fc.array(leaf), async (services, a, b) => {
      const others = [...a.map((text) => `-A KUBE-A ${text}`), ...b.map((text) => `-A KUBE-B ${text}`)];
      const ends = await walk(services, [':KUBE-A - [0:0]', ':KUBE-B - [0:0]', ...others]);
      const sum = ends.reduce((total, { probability }) => total + probability, 0);
      assert.ok(Math.abs(sum - 1) < 1e-9, `${sum}`);
    }),
  );
});

function walk(rules: readonly string[], others: readonly string[] = []): Promise<TableEnd[]> {
  return walker().enter(serviceTable(rules, others), 'PREROUTING', packet);
}

function walker(): RuleWalk {
  const sets: Readonly<Record<string, boolean>> = { YES: true, NO: false };
  const facts = {
    isLocal: (address: IP) => address.bytes[0] === 10,
    isBridged: () => false,
    isInSet: (set: string) => sets[set],
  };
  return new RuleWalk(facts, new Set(['KUBE-SERVICES']), new FakeClock());
}

function serviceTable(rules: readonly string[], others: readonly string[] = []): SavedTable {
  return tableOf([
    '-A PREROUTING -j KUBE-SERVICES',
    ...rules.map((rule) => `-A KUBE-SERVICES ${rule}`),
    ...others,
  ]);
}

function tableOf(lines: readonly string[]): SavedTable {
  const table = new SavedTable('nat');
  for (const line of [':PREROUTING ACCEPT [0:0]', ':KUBE-SERVICES - [0:0]', ...lines]) table.take(line);
  return table;
}

function verdictsOf(ends: readonly TableEnd[]): string[] {
  return ends.map(({ verdict }) => verdict);
}

function ip(text: string): IP {
  const parsed = parseIP(text);
  assert.ok(parsed);
  return parsed;
}
