import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION, type DiffReport } from '../inspect/api.ts';
import { diffText } from './diff.ts';
import type { Paint } from './terminal.ts';

const plain: Paint = (_style, text) => text;

test('diff shows for each family its differences, that there are none, or why they are unknown', () => {
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
    `IPv4: 1 difference, perhaps only because a sync was running
  shop/web/TCP
    + element service-ips x: y

IPv6: cannot be compared: EPERM

+ missing   - should not be there   ~ differs
`,
  );
  const right = {
    ...report,
    families: [{ family: 'IPv4', error: null, settled: true, differences: 0 } as const],
    items: [],
  };
  assert.equal(diffText(right, plain), 'IPv4: no difference\n');
});
