import type { Handler } from '../admin/http.ts';
import { inspectionHandler } from '../admin/inspection-page.ts';
import { buildInfo } from '../cli/version.ts';
import type { ProxyHealth } from '../health/proxy-health.ts';
import { type InspectedFamily, Inspector } from '../inspect/inspector.ts';
import { KernelView } from '../inspect/kernel-view.ts';
import { peerCheck } from '../inspect/peers.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { systemClock } from '../lib/clock.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import type { FamilyProxier } from '../proxier/family-proxier.ts';
import { nodeFactsOf, ownAddresses } from './node-facts.ts';
import type { Proxiers } from './proxiers.ts';
import { modeContext, type Start } from './start.ts';

export interface InspectionInput extends Start {
  readonly proxiers: Proxiers;
  readonly health: ProxyHealth | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly startTime: number;
}

/** Answers questions about this process over HTTP. */
export function openInspection(input: InspectionInput): Handler {
  const { options, mode, nodeName, proxiers, health, startTime } = input;
  const inspector = new Inspector({
    version: buildInfo(options.version.gitVersion).gitVersion,
    mode: mode.name,
    nodeName,
    startTime,
    families: proxiers.families.map((proxier) => inspectedFamily(proxier, input)),
    health: () => health?.health().families,
    setAside: () => proxiers.setAside.objects(),
    clock: systemClock,
  });
  return inspectionHandler({ inspector, admits: peerCheck(options.inspectionFrom), clock: systemClock });
}

function inspectedFamily(view: FamilyProxier, input: InspectionInput): InspectedFamily {
  const { family } = view;
  const context = modeContext(family, input);
  return {
    view,
    nodeIP: context.nodeIP,
    rules: input.mode.packetRules(context),
    facts: async () => nodeFactsOf(family, input, await ownAddresses(), view.serviceCIDRs),
    kernel: new KernelView({ open: () => input.mode.inspect(context), clock: systemClock }),
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
