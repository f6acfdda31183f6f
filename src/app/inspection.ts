import type { Handler } from '../admin/http.ts';
import { inspectionHandler } from '../admin/inspection-page.ts';
import type { Mode } from '../backends/mode.ts';
import type { ProxyHealth } from '../health/proxy-health.ts';
import { type InspectedFamily, Inspector } from '../inspect/inspector.ts';
import { KernelView } from '../inspect/kernel-view.ts';
import { peerCheck } from '../inspect/peers.ts';
import { openRouteLookup } from '../kernel/route/lookup.ts';
import { systemClock } from '../lib/clock.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import type { Logger } from '../obs/log.ts';
import type { FamilyProxier } from '../proxier/family-proxier.ts';
import type { Completed } from './complete.ts';
import { modeContext } from './mode-context.ts';
import { nodeFactsOf, ownAddresses } from './node-facts.ts';
import type { NodeSetup } from './node-setup.ts';
import type { Proxiers } from './proxiers.ts';

export interface InspectionInput {
  readonly version: string;
  readonly completed: Completed;
  readonly mode: Mode;
  readonly setup: NodeSetup;
  readonly nodeName: string;
  readonly proxiers: Proxiers;
  readonly health: ProxyHealth | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly startTime: number;
  /** Addresses and CIDRs that may ask besides loopback. */
  readonly admitted: readonly string[];
  readonly logger: Logger;
}

/** Answers questions about this process. */
export function openInspection(input: InspectionInput): Handler {
  const { version, completed, nodeName, proxiers, health, startTime, admitted } = input;
  const inspector = new Inspector({
    version,
    mode: completed.config.mode,
    nodeName,
    startTime,
    families: proxiers.families.map((proxier) => inspectedFamily(proxier, input)),
    health: () => health?.health().families,
    setAside: () => proxiers.setAside.objects(),
    clock: systemClock,
  });
  return inspectionHandler({ inspector, admits: peerCheck(admitted), clock: systemClock });
}

function inspectedFamily(view: FamilyProxier, input: InspectionInput): InspectedFamily {
  const { family } = view;
  const { setup } = input;
  return {
    view,
    nodeIP: setup.addresses.ips[family],
    facts: async () => nodeFactsOf(family, input, await ownAddresses(), view.serviceCIDRs),
    kernel: kernelView(view, input),
    interfaceTowards,
  };
}

function kernelView(
  { family }: FamilyProxier,
  { mode, completed, setup, logger }: InspectionInput,
): KernelView {
  const context = modeContext(family, completed, setup, logger);
  return new KernelView({ open: () => mode.inspect(context), clock: systemClock });
}

async function interfaceTowards(address: string): Promise<string> {
  const lookup = openRouteLookup(await loadLibc(), { clock: systemClock });
  try {
    return await lookup.interfaceTowards(address);
  } finally {
    lookup.close();
  }
}
