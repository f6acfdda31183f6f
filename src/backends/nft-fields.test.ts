import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Expr } from '../kernel/nft/expr.ts';
import type { Family } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';
import { PacketFields, type RuleBody } from './nft-fields.ts';

const localPod = (family: Family, detector: LocalDetector): RuleBody =>
  new PacketFields(family).localPod(detector) ?? assert.fail('nothing can tell');

function maskOf(family: Family, cidr: string): number[] | undefined {
  const bitwise = localPod(family, { kind: 'cidr', cidr }).find((expr) => expr.kind === 'bitwise');
  return bitwise && [...bitwise.mask];
}

function comparedWith(detector: LocalDetector): Expr | undefined {
  return localPod('IPv4', detector).at(-1);
}

test('an address is cut to the prefix length, and one that is a pod by itself is not', () => {
  assert.deepEqual(maskOf('IPv4', '10.244.16.0/20'), [255, 255, 240, 0]);
  assert.deepEqual(maskOf('IPv4', '0.0.0.0/0'), [0, 0, 0, 0]);
  assert.deepEqual(maskOf('IPv6', 'fd00::/61'), [
    255,
    255,
    255,
    255,
    255,
    255,
    255,
    248,
    ...Array(8).fill(0),
  ]);
  assert.equal(maskOf('IPv4', '10.244.1.5/32'), undefined);
  assert.equal(maskOf('IPv6', 'fd00::5/128'), undefined);
});

test('a CIDR of the other family is an error that names it', () => {
  assert.throws(() => maskOf('IPv4', 'fd00::/64'), { message: 'fd00::/64 is not a CIDR of IPv4' });
});

test('an interface is known by its whole name, or by the start of it', () => {
  const bytes = (text: string) => new Uint8Array(Buffer.from(text));
  const cmp = (value: Uint8Array) => ({ kind: 'cmp', op: 'eq', sreg: 0, value });
  assert.deepEqual(comparedWith({ kind: 'interface', name: 'cbr0' }), cmp(bytes(`cbr0${'\0'.repeat(12)}`)));
  assert.deepEqual(
    comparedWith({ kind: 'interface', name: 'sixteen-bytes-xy' }),
    cmp(bytes('sixteen-bytes-x\0')),
  );
  assert.deepEqual(comparedWith({ kind: 'prefix', prefix: 'veth' }), cmp(bytes('veth')));
});

test('keys fill consecutive registers', () => {
  const written = (family: Family) =>
    new PacketFields(family).frontend(0).map((expr) => ('dreg' in expr ? expr.dreg : undefined));
  assert.deepEqual(written('IPv4'), [0, 1, 2]);
  assert.deepEqual(written('IPv6'), [0, 4, 5]);
  assert.equal(new PacketFields('IPv6').behind('frontend'), 6);
});
