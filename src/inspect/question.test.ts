import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { node } from '../../test/inspected-proxy.ts';
import { packetOf, QuestionError, readQuestion } from './question.ts';

const good = { source: '10.1.2.3', destination: '10.96.0.1', port: '80' };

function read(params: Readonly<Record<string, string>>) {
  return readQuestion((name) => params[name] ?? null);
}

function packet(params: Readonly<Record<string, string>>) {
  return packetOf(read(params), node, async (address) => `towards ${address}`);
}

test('a question has canonical addresses, and TCP by default', () => {
  assert.deepEqual(read({ ...good, destination: '::ffff:10.96.0.1' }), {
    family: 'IPv4',
    source: '10.1.2.3',
    destination: '10.96.0.1',
    port: 80,
    protocol: 'TCP',
    interface: undefined,
  });
  const six = read({ source: 'FD00::1', destination: 'fd00:0::2', port: '53', protocol: 'udp' });
  assert.deepEqual(
    [six.family, six.source, six.destination, six.protocol],
    ['IPv6', 'fd00::1', 'fd00::2', 'UDP'],
  );
});

const faults: [params: Record<string, string>, message: string][] = [
  [{ source: good.source, port: '80' }, 'destination is missing'],
  [{ ...good, destination: 'web' }, 'destination "web" is not an IP address'],
  [{ destination: good.destination, port: '80' }, 'source is missing'],
  [{ ...good, source: '10.1.2.3.4' }, 'source "10.1.2.3.4" is not an IP address'],
  [{ ...good, source: 'fd00::1' }, 'source fd00::1 and destination 10.96.0.1 are of different families'],
  [{ source: good.source, destination: good.destination }, 'port is missing'],
  [{ ...good, port: '0' }, 'port "0" is not a number from 1 to 65535'],
  [{ ...good, port: '65536' }, 'port "65536" is not a number from 1 to 65535'],
  [{ ...good, port: '8e1' }, 'port "8e1" is not a number from 1 to 65535'],
  [
    { ...good, source: 'node', interface: 'eth0' },
    'a packet that the node itself sends does not arrive on an interface, got eth0',
  ],
  [{ ...good, protocol: 'icmp' }, 'protocol "icmp" is none of TCP, UDP, SCTP'],
];

for (const [params, message] of faults) {
  test(`the question ${JSON.stringify(params)} is an error`, () => {
    assert.throws(() => read(params), new QuestionError(message));
  });
}

test('any text as a question gives a question or a QuestionError', () => {
  const text = fc.option(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.nat().map(String)), { nil: null });
  fc.assert(
    fc.property(text, text, text, text, (source, destination, port, protocol) => {
      const params: Record<string, string | null> = { source, destination, port, protocol };
      try {
        const question = readQuestion((name) => params[name] ?? null);
        assert.ok(question.port > 0 && question.port < 65_536);
      } catch (error) {
        assert.ok(error instanceof QuestionError);
      }
    }),
  );
});

test('a packet arrives on the given interface, or on the one that leads to its source', async () => {
  assert.deepEqual((await packet(good)).origin, { interface: 'towards 10.1.2.3' });
  assert.deepEqual((await packet({ ...good, interface: 'cni0' })).origin, { interface: 'cni0' });
});

test('the node sends from its own address, and to itself from the destination address', async () => {
  const cases: [params: Record<string, string>, source: string][] = [
    [{ ...good, source: 'node' }, '192.0.2.5'],
    [{ ...good, source: '192.0.2.5' }, '192.0.2.5'],
    [{ ...good, source: 'node', destination: '127.0.0.7' }, '127.0.0.7'],
    [{ ...good, source: 'node', destination: '192.0.2.5' }, '192.0.2.5'],
  ];
  for (const [params, source] of cases) {
    const sent = await packet(params);
    assert.deepEqual([sent.origin, sent.source], ['node', source]);
  }
});
