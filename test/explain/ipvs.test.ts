import { test } from 'node:test';
import { ipvsMode } from '../../src/backends/ipvs/mode.ts';
import { runInNode } from '../contract/node-commands.ts';
import { realServers } from '../ipvs/node-state.ts';
import { ipvsUnavailable } from '../ipvs/on-ipvs-kernel.ts';
import { runExplain } from './suite.ts';

const skip = await ipvsUnavailable();

if (skip !== undefined) test('explain in ipvs mode', { skip }, () => {});
else
  runExplain({
    mode: 'ipvs',
    module: import.meta.url,
    tampering: {
      mode: ipvsMode,
      takeEndpoint: async (clusterIP) => {
        const place = placeOf(clusterIP);
        const [real = ''] = Object.keys((await realServers(place)) ?? {});
        await runInNode('ipvsadm', '-d', '-t', place, '-r', real);
      },
      missing: (clusterIP) => `${placeOf(clusterIP)}/TCP`,
      // The kernel does not announce changes of virtual servers: the program finds them after a sync period.
      isRepaired: false,
    },
  });

function placeOf(clusterIP: string): string {
  return clusterIP.includes(':') ? `[${clusterIP}]:80` : `${clusterIP}:80`;
}
