import { nftablesMode } from '../../src/backends/nftables/mode.ts';
import { runInNode } from '../contract/node-commands.ts';
import { otherRulesets } from './other-rules.ts';
import { runExplain } from './suite.ts';

runExplain({
  mode: 'nftables',
  module: import.meta.url,
  otherRules: otherRulesets,
  tampering: {
    mode: nftablesMode,
    takeEndpoint: (clusterIP, family) =>
      runInNode(
        'nft',
        `delete element ${family === 'IPv4' ? 'ip' : 'ip6'} kube-proxy endpoints { ${clusterIP} . tcp . 80 . 1 }`,
      ),
    missing: (clusterIP) => `endpoints ${clusterIP} . tcp . 80 . 1`,
    isRepaired: true,
  },
});
