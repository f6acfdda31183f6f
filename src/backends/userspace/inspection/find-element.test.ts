import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { concatValues } from '../../../kernel/nft/fields.ts';
import { nodePortAddresses } from '../../../model/node-port-addresses.ts';
import { mergeRanges } from '../../../plan/source-ranges.ts';
import { portalSetDefinition } from '../portals/layout.ts';
import { nodeElements } from '../portals/node-elements.ts';
import { findElement } from './find-element.ts';

const octet = fc.integer({ min: 0, max: 255 });
const cidrs = fc
  .array(fc.tuple(octet, octet, fc.integer({ min: 1, max: 16 })), { minLength: 1, maxLength: 6 })
  .map((all) => all.map(([a, b, prefix]) => `${a}.${b}.0.0/${prefix}`));
const addresses = fc.tuple(octet, octet, octet, octet).map((bytes) => Uint8Array.from(bytes));

function isInside(texts: readonly string[], address: Uint8Array): boolean {
  return mergeRanges(texts).some(
    ({ first, last }) => Buffer.compare(first, address) <= 0 && Buffer.compare(address, last) <= 0,
  );
}

test('ranges of one field, kept as boundaries', () => {
  const settings = {
    family: 'IPv4',
    hostIP: '192.0.2.5',
    nodeIP: '192.0.2.5',
    localDetector: { kind: 'none' },
    nodePortAddresses: nodePortAddresses('IPv4', []),
    portRange: undefined,
    choice: 'round-robin',
    retryMs: 1_000,
  } as const;
  const set = portalSetDefinition('IPv4', 'service-ranges');
  fc.assert(
    fc.property(cidrs, addresses, (texts, address) => {
      const elements = nodeElements(texts, [], settings).map(({ element }) => element);
      assert.equal(findElement(set, elements, address) !== undefined, isInside(texts, address));
    }),
  );
});

test('ranges of several fields, each within its own', () => {
  const set = portalSetDefinition('IPv4', 'sources');
  const frontend = Uint8Array.of(198, 51, 100, 8, 6, 0, 0, 0, 0, 80, 0, 0);
  const other = Uint8Array.of(198, 51, 100, 9, 6, 0, 0, 0, 0, 80, 0, 0);
  fc.assert(
    fc.property(cidrs, addresses, (texts, address) => {
      const elements = mergeRanges(texts).map(({ first, last }) => ({
        key: concatValues(frontend, first),
        keyEnd: concatValues(frontend, last),
      }));
      const hit = findElement(set, elements, concatValues(frontend, address));
      assert.equal(hit !== undefined, isInside(texts, address));
      assert.equal(findElement(set, elements, concatValues(other, address)), undefined);
    }),
  );
});

test('a set without ranges has a key or not', () => {
  const set = portalSetDefinition('IPv4', 'cluster-addresses');
  const [a, b] = [Uint8Array.of(10, 96, 0, 1), Uint8Array.of(10, 96, 0, 2)];
  assert.deepEqual(findElement(set, [{ key: a }], a), { key: a });
  assert.equal(findElement(set, [{ key: a }], b), undefined);
});
