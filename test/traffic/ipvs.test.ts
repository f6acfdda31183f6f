import { test } from 'node:test';
import { ipvsUnavailable } from '../ipvs/on-ipvs-kernel.ts';
import { runTraffic } from './suite.ts';

const skip = await ipvsUnavailable();

if (skip !== undefined) test('traffic in ipvs mode', { skip }, () => {});
else {
  runTraffic({
    mode: 'ipvs',
    module: import.meta.url,
    bendsPolicyLocal: true,
    bindingsOutlastTheirTime: true,
  });
}
