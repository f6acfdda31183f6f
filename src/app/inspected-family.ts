import { lookAtOtherRules } from '../backends/other-rules.ts';
import type { FamilyView } from '../inspect/family-view.ts';
import type { InspectedFamily } from '../inspect/inspector.ts';
import { KernelView } from '../inspect/kernel-view.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { systemClock } from '../lib/clock.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import { nodeFactsOf, ownAddresses } from './node-facts.ts';
import { modeContext, type Start } from './start.ts';

/** One family on this machine: its plans, and the means to ask the kernel here. */
export interface FamilyHere extends InspectedFamily {
  readonly kernel: KernelView;
}

export function familyHere(view: FamilyView, start: Start): FamilyHere {
  const { family } = view;
  const context = modeContext(family, start);
  return {
    view,
    nodeIP: context.nodeIP,
    rules: start.mode.packetRules(context),
    facts: async () => nodeFactsOf(family, start, await ownAddresses(), view.serviceCIDRs),
    kernel: new KernelView({ open: () => start.mode.inspect(context), clock: systemClock }),
    otherRules: (packet, answer) => {
      const { mode } = start;
      const own = { tables: mode.tablesOf?.(family) ?? [], chains: mode.chainNames, nodeIP: context.nodeIP };
      return lookAtOtherRules(packet, answer, own, systemClock);
    },
    interfaceTowards,
  };
}

async function interfaceTowards(address: string): Promise<string> {
  const route = openRouteClient(await loadLibc(), { clock: systemClock });
  try {
    return await route.interfaceTowards(address);
  } finally {
    route.close();
  }
}
