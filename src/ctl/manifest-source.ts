import { type Completed, complete } from '../app/complete.ts';
import { type KnownNode, meetNode } from '../app/known-node.ts';
import { loadPlans } from '../app/load-plans.ts';
import { loadMode } from '../app/modes.ts';
import { nodeFactsOf } from '../app/node-facts.ts';
import { setUpNode } from '../app/node-setup.ts';
import { parseCommandLine } from '../cli/command-line.ts';
import type { Options } from '../cli/options.ts';
import { KUBERNETES_VERSION } from '../cli/version.ts';
import { validated } from '../config/validate.ts';
import { API_VERSION } from '../inspect/api.ts';
import type { FamilyView } from '../inspect/family-view.ts';
import { Inspector } from '../inspect/inspector.ts';
import { readQuestion } from '../inspect/question.ts';
import { silentRestMetrics } from '../kube/rest-metrics.ts';
import { systemClock } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';
import type { PlannedFamily } from '../proxier/planned-family.ts';
import type { CtlOptions } from './flags.ts';
import type { AskedPacket, ReportSource } from './source.ts';

/** Answers from manifests alone: what a proxy with this configuration would decide on that node. */
export async function manifestSource(options: CtlOptions, logger: Logger): Promise<ReportSource> {
  const draft = await complete(proxyOptions(options), logger);
  const completed = { ...draft, config: validated(draft.config, draft.gates, () => {}) };
  const known = await meetNode(proxyOptions(options), completed, silentRestMetrics, logger);
  const close = () => known.cluster.source.stop();
  try {
    return reports(await inspectorOf(known, completed, logger), close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function inspectorOf(known: KnownNode, completed: Completed, logger: Logger): Promise<Inspector> {
  const { config } = completed;
  const families = new Set(['IPv4', 'IPv6'] as const);
  const setup = setUpNode(config, known.start, known.addresses, families, logger);
  const loaded = await loadPlans(known, completed, setup, logger);
  const mode = await loadMode(config.mode);
  const input = { completed, mode, setup, nodeName: known.nodeName };
  return new Inspector({
    version: KUBERNETES_VERSION,
    mode: config.mode,
    nodeName: known.nodeName,
    startTime: systemClock.now(),
    families: loaded.families.map((planned) => ({
      view: viewOf(planned),
      nodeIP: setup.addresses.ips[planned.family],
      facts: () => nodeFactsOf(planned.family, input, known.start.nodeIPs, planned.serviceCIDRs),
      kernel: 'the answer comes from manifests',
      interfaceTowards: async () => '',
    })),
    health: () => undefined,
    setAside: () => loaded.setAside.objects(),
    clock: systemClock,
  });
}

function reports(inspector: Inspector, close: () => Promise<void>): ReportSource {
  const needsProxy = async () => {
    throw new Error('this needs a running kube-proxy: leave out --manifests');
  };
  return {
    status: needsProxy,
    services: async (name) => ({
      apiVersion: API_VERSION,
      kind: 'ServiceList',
      items: [...inspector.services(name)],
    }),
    endpoints: async (name) => ({
      apiVersion: API_VERSION,
      kind: 'EndpointList',
      items: [...inspector.endpoints(name)],
    }),
    explain: (packet) => inspector.explain(readQuestion((name) => packet[name as keyof AskedPacket] ?? null)),
    diff: needsProxy,
    counters: needsProxy,
    close,
  };
}

/** The options of a kube-proxy that was started on these manifests. */
function proxyOptions({ manifests, config, node, proxyMode }: CtlOptions): Options {
  const argv = [`--manifests=${manifests}`];
  if (config !== '') argv.push(`--config=${config}`);
  if (node !== '') argv.push(`--hostname-override=${node}`);
  if (proxyMode !== '') argv.push(`--proxy-mode=${proxyMode}`);
  const parsed = parseCommandLine(argv);
  if (parsed.action !== 'run') throw new Error(`nothing to run: ${argv.join(' ')}`);
  return parsed.options;
}

function viewOf(planned: PlannedFamily): FamilyView {
  return {
    family: planned.family,
    isInitialised: true,
    plans: planned.plans,
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
