import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readPacket } from './packet-argument.ts';

for (const [source, destination, packet] of [
  ['10.0.0.1', '10.96.0.1:80', ['10.0.0.1', '10.96.0.1', '80', 'TCP']],
  ['node', '10.96.0.1:53/udp', ['node', '10.96.0.1', '53', 'udp']],
  ['[fd00::1]', '[fd00::2]:443/SCTP', ['fd00::1', 'fd00::2', '443', 'SCTP']],
  ['fd00::1', '[fd00::2]:443', ['fd00::1', 'fd00::2', '443', 'TCP']],
] as const) {
  test(`the packet arguments ${source} ${destination} are read`, () => {
    const { source: from, destination: to, port, protocol } = readPacket(source, destination);
    assert.deepEqual([from, to, port, protocol], packet);
  });
}

for (const destination of [
  '10.96.0.1',
  '',
  '[fd00::2]',
  '80',
  '10.96.0.1/TCP',
  'fd00::1:80',
  '[fd00::1]80',
]) {
  test(`the packet destination ${JSON.stringify(destination)} is an error that quotes it`, () => {
    assert.throws(
      () => readPacket('10.0.0.1', destination),
      ({ message }: Error) => message.startsWith(JSON.stringify(destination)),
    );
  });
}

test('any text as a packet argument gives a packet or an error that quotes it', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (source, destination) => {
      try {
        const { destination: to, port } = readPacket(source, destination);
        assert.ok(destination.includes(to) && destination.includes(port));
      } catch (error) {
        assert.ok((error as Error).message.startsWith(JSON.stringify(destination)));
      }
    }),
  );
});
