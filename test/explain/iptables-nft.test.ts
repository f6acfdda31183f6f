import { ownNamespace } from '../cluster/lab/namespace.ts';
import { useFlavour } from '../iptables/flavours.ts';
import { iptablesTampering } from './iptables-tampering.ts';
import { otherRulesets } from './other-rules.ts';
import { runExplain } from './suite.ts';

if (ownNamespace() !== undefined) useFlavour('nft');

runExplain({
  mode: 'iptables',
  module: import.meta.url,
  tampering: iptablesTampering,
  otherRules: otherRulesets,
});
