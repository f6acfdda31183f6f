import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseRealServerTable } from './proc-table.ts';

/** Text of kernel 6.1. */
const text = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:0050 rr  
  -> 0A000002:1F90      Masq    0      0          3         
  -> 0A000001:1F90      Masq    1      12         0         
SCTP 0A600001:0050 wrr persistent 10800 FFFFFFFF
UDP  [fd00:0000:0000:0000:0000:0000:0000:0001]:0035 mh  persistent 600 00000080
  -> [fd01:0000:0000:0000:0000:0000:0000:0005]:14E9      Masq    1      0          0         
FWM  00000007 wlc 
  -> 0A000009:0050      Route   5      0          0         
`;

test('real servers are listed under their virtual server', () => {
  assert.deepEqual(
    parseRealServerTable(text),
    new Map([
      [
        '10.96.0.1:80/TCP',
        [
          { address: '10.0.0.2', port: 8080, weight: 0 },
          { address: '10.0.0.1', port: 8080, weight: 1 },
        ],
      ],
      ['10.96.0.1:80/SCTP', []],
      ['[fd00::1]:53/UDP', [{ address: 'fd01::5', port: 5353, weight: 1 }]],
    ]),
  );
});

test('no text crashes the parser of /proc/net/ip_vs', () => {
  const noise = fc.array(fc.tuple(fc.nat(text.length - 1), fc.string({ maxLength: 3 })), { maxLength: 5 });
  fc.assert(
    fc.property(noise, (changes) => {
      let damaged = text;
      for (const [at, by] of changes) damaged = damaged.slice(0, at) + by + damaged.slice(at + 1);
      for (const reals of parseRealServerTable(damaged).values()) {
        for (const { port, weight } of reals) assert.ok(port <= 0xffff && weight >= 0);
      }
    }),
    { numRuns: 1000 },
  );
});
