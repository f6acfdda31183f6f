import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION, type DiffReport } from '../inspect/api.ts';
import { diffText } from './diff.ts';
import type { Paint } from './terminal.ts';

const plain: Paint = (_style, text) => text;

test('each family says that it is right, what is wrong, or why that is not known', () => {
  const report: DiffReport = {
    apiVersion: API_VERSION,
    kind: 'Diff',
    mode: 'nftables',
    families: [
      { family: 'IPv4', error: null, settled: false, differences: 1 },
      { family: 'IPv6', error: 'EPERM', settled: true, differences: 0 },
    ],
    items: [
      {
        family: 'IPv4',
        service: 'shop/web/TCP',
        kind: 'element',
        object: 'service-ips x',
        wanted: 'y',
        found: undefined,
      },
    ],
  };
  assert.equal(
    diffText(report, plain),
    `IPv4: 1 difference, some perhaps because syncs were under way
  shop/web/TCP
    + element service-ips x: y

IPv6: cannot be compared: EPERM

+ is missing   - should not be there   ~ is not as it should be
`,
  );
  const right = {
    ...report,
    families: [{ family: 'IPv4', error: null, settled: true, differences: 0 } as const],
    items: [],
  };
  assert.equal(diffText(right, plain), 'IPv4: the kernel holds what it should\n');
});
