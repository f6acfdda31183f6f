import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { type Logger, silentLogger } from '../../obs/log.ts';
import { datagramLog, formatDatagram } from './debug.ts';

const message = fakeMessage({ type: 2569, flags: 0x5, sequence: 3, port: 0 }, (writer) => {
  writer.nfgenmsg(2);
  writer.string(1, 'abcd');
  const nest = writer.beginNested(4);
  writer.u32Be(1, 0x41420000);
  writer.endNested(nest);
});

test('a netlink message is printed in the layout of libmnl', () => {
  assert.equal(
    formatDatagram(message),
    [
      '----------------\t------------------',
      '|  0000000044  |\t| message length |',
      '| 02569 | R-A- |\t|  type | flags  |',
      '|  0000000003  |\t| sequence number|',
      '|  0000000000  |\t|     port ID    |',
      '----------------\t------------------',
      '| 02 00 00 00  |\t|  extra header  |',
      '|00009|--|00001|\t|len |flags| type|',
      '| 61 62 63 64  |\t|      data      |\t a b c d',
      '| 00 00 00 00  |\t|      data      |\t        ',
      '|00012|N-|00004|\t|len |flags| type|',
      '|00008|--|00001|\t|len |flags| type|',
      '| 41 42 00 00  |\t|      data      |\t A B    ',
      '----------------\t------------------',
    ].join('\n'),
  );
});

test('malformed bytes are printed as an error', () => {
  assert.equal(formatDatagram(Uint8Array.of(1, 2)), '(2 bytes left, too few for a message header)');
});

test('netlink datagrams are logged at verbosity 10', () => {
  const lines: unknown[] = [];
  const loggerAt = (verbosity: number): Logger => ({
    ...silentLogger,
    v: (level) => ({
      ...silentLogger,
      enabled: level <= verbosity,
      info: (_message, attributes) => void lines.push(attributes),
    }),
  });
  assert.equal(datagramLog(loggerAt(9)), undefined);
  datagramLog(loggerAt(10))?.('send', message);
  assert.deepEqual(lines, [{ direction: 'send', datagram: formatDatagram(message) }]);
});
