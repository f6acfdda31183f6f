import { type Completed, complete } from '../app/complete.ts';
import { familyHere } from '../app/inspected-family.ts';
import { loadMode } from '../app/modes.ts';
import { nodeFactsOf } from '../app/node-facts.ts';
import { type PlannedStart, planOnce } from '../app/plan-once.ts';
import { modeContext } from '../app/start.ts';
import { parseCommandLine } from '../cli/command-line.ts';
import type { Options } from '../cli/options.ts';
import { KUBERNETES_VERSION } from '../cli/version.ts';
import { validated } from '../config/validate.ts';
import { API_VERSION } from '../inspect/api.ts';
import type { FamilyView } from '../inspect/family-view.ts';
import { type InspectedFamily, Inspector } from '../inspect/inspector.ts';
import { Journal } from '../inspect/journal.ts';
import { readQuestion } from '../inspect/question.ts';
import { systemClock } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';
import type { PlannedFamily } from '../proxier/planned-family.ts';
import type { CtlOptions } from './flags.ts';
import { type KernelHere, kernelHere } from './kernel-here.ts';
import { patienceOf } from './patience.ts';
import type { AskedPacket, ReportSource } from './source.ts';

/**
 * Answers without a running proxy: plans once, from manifests or the objects of an API server, as a proxy with this
 * configuration does at its start. Where the node is this machine, compares the plans with the kernel. Rejects when the
 * configuration or the objects cannot be read.
 */
export async function plannedSource(ctlOptions: CtlOptions, logger: Logger): Promise<ReportSource> {
  const options = proxyOptions(ctlOptions);
  const completed = await completeFor(ctlOptions, options, logger);
  const mode = await loadMode(completed.config.mode);
  let kernel: KernelHere | undefined;
  const limitMs = patienceOf(ctlOptions).answerMs;
  const start = await planOnce(
    { options, completed, mode, logger },
    async (connected) => {
      kernel = await kernelHere(connected, ctlOptions.node !== '');
      return kernel.families;
    },
    { connectMs: limitMs, listMs: limitMs },
  );
  const families = familiesOf(start, kernel?.obstacle);
  return reports(inspectorOf(start, families), async () => {
    await Promise.all(
      families.map(({ kernel }) => (typeof kernel === 'string' ? undefined : kernel.close())),
    );
    await start.cluster.source.stop();
  });
}

/** The validated configuration. A mode that was not chosen is worth a warning: the proxy may run in another one. */
async function completeFor({ kubeconfig }: CtlOptions, options: Options, logger: Logger): Promise<Completed> {
  const draft = await complete(options, logger);
  const config = validated(draft.config, draft.gates, () => {});
  if (draft.modeDefaulted) {
    logger.error(
      undefined,
      `assuming ${config.mode} mode; --config or --proxy-mode set the mode of the proxy`,
    );
  }
  if (kubeconfig === '') return { ...draft, config };
  return { ...draft, config: { ...config, clientConnection: { ...config.clientConnection, kubeconfig } } };
}

/** `obstacle`: why the kernel of this machine cannot be asked. */
function familiesOf(start: PlannedStart, obstacle: string | undefined): InspectedFamily[] {
  const { mode, nodeStart, addresses, planned } = start;
  if (obstacle === undefined) return planned.map((family) => familyHere(viewOfPlans(family), start));
  return planned.map((family) => ({
    view: viewOfPlans(family),
    nodeIP: addresses.ips[family.family],
    rules: mode.packetRules(modeContext(family.family, start)),
    facts: () => nodeFactsOf(family.family, start, nodeStart.nodeIPs, family.serviceCIDRs),
    kernel: obstacle,
    interfaceTowards: async () => '',
  }));
}

function inspectorOf(start: PlannedStart, families: readonly InspectedFamily[]): Inspector {
  const { cluster, mode, nodeName, setAside } = start;
  return new Inspector({
    version: KUBERNETES_VERSION,
    mode: mode.name,
    nodeName,
    startTime: systemClock.now(),
    families,
    problems: () => [],
    sources: () => cluster.source.status(),
    configFile: () => undefined,
    setAside: () => setAside.objects(),
    journal: new Journal(systemClock),
    clock: systemClock,
  });
}

function reports(inspector: Inspector, close: () => Promise<void>): ReportSource {
  const needsProxy = async () => {
    throw new Error('this needs a running kube-proxy');
  };
  return {
    status: needsProxy,
    services: async (selector) => ({
      apiVersion: API_VERSION,
      kind: 'ServiceList',
      items: [...(await inspector.services(selector))],
    }),
    endpoints: async (selector) => ({
      apiVersion: API_VERSION,
      kind: 'EndpointList',
      items: [...(await inspector.endpoints(selector))],
    }),
    explain: (packet) => inspector.explain(readQuestion((name) => packet[name as keyof AskedPacket] ?? null)),
    diff: async () => {
      const { head, items } = await inspector.compare();
      return { ...head, items: [...items] };
    },
    traffic: needsProxy,
    affinity: needsProxy,
    flows: needsProxy,
    watchFlows: needsProxy,
    journal: needsProxy,
    close,
  };
}

/** The options of a kube-proxy that is started with these sources. */
function proxyOptions({ manifests, kubeconfig, config, node, proxyMode }: CtlOptions): Options {
  const given = { manifests, kubeconfig, config, 'hostname-override': node, 'proxy-mode': proxyMode };
  const argv = Object.entries(given).flatMap(([flag, value]) => (value === '' ? [] : [`--${flag}=${value}`]));
  const parsed = parseCommandLine(argv);
  if (parsed.action !== 'run') throw new Error(`nothing to run: ${argv.join(' ')}`);
  return parsed.options;
}

/** Plans that were made without a proxy, as the view of a proxy that does nothing. */
export function viewOfPlans(
  planned: Pick<PlannedFamily, 'family' | 'plans' | 'placements' | 'serviceCIDRs' | 'totalEndpoints'>,
): FamilyView {
  return {
    family: planned.family,
    isInitialised: true,
    plans: planned.plans,
    placements: (port, known) => planned.placements(port, known),
    serviceCIDRs: planned.serviceCIDRs,
    totalEndpoints: planned.totalEndpoints,
    pending: { services: 0, slices: 0 },
    activity: {
      isSyncing: false,
      syncs: 0,
      lastSync: undefined,
      failures: 0,
      lastFailure: undefined,
      repairs: 0,
      lastRepair: undefined,
    },
  };
}
