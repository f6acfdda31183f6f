import { iptablesMode } from '../../src/backends/iptables/mode.ts';
import type { Family } from '../../src/model/ip.ts';
import { runInNode } from '../contract/node-commands.ts';
import type { Tampering } from './tampering.ts';

/** Deletes the rule by which a service sends half of its connections to the first of two endpoints. */
export const iptablesTampering: Tampering = {
  mode: iptablesMode,
  takeEndpoint: async (clusterIP, family) => {
    const rule = await choiceOf(clusterIP, family);
    await runInNode(programOf(family), '-t', 'nat', '-D', ...rule.slice(1));
  },
  missing: () => 'nat KUBE-SVC-',
  isRepaired: true,
};

/** The words of the rule; comments are in quotes. */
async function choiceOf(clusterIP: string, family: Family): Promise<string[]> {
  const rules = (await runInNode(programOf(family), '-t', 'nat', '-S')).split('\n');
  const isDispatch = (rule: string) =>
    rule.startsWith('-A KUBE-SERVICES ') && rule.includes(` -d ${clusterIP}/`);
  const dispatch = rules.find((rule) => isDispatch(rule) && rule.includes(' -p tcp '));
  const chain = / -j (KUBE-SVC-\S+)/.exec(dispatch ?? '')?.[1];
  const choice = rules.find((rule) => rule.startsWith(`-A ${chain} `) && rule.includes('--probability'));
  if (choice === undefined) throw new Error(`no rule chooses endpoints of ${clusterIP}`);
  return [...choice.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

function programOf(family: Family): string {
  return family === 'IPv4' ? 'iptables' : 'ip6tables';
}
