import { test } from 'node:test';
import { ipvsUnavailable } from '../ipvs/on-ipvs-kernel.ts';
import { ipvsSkips } from './ipvs-skips.ts';
import { runContract } from './suite.ts';

const skip = await ipvsUnavailable();

if (skip !== undefined) test('contract of ipvs mode', { skip }, () => {});
else
  runContract({
    mode: 'ipvs',
    clusters: [['IPv4'], ['IPv6'], ['IPv4', 'IPv6']],
    skip: ipvsSkips,
    module: import.meta.url,
  });
