import { complete } from '../app/complete.ts';
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
import { Inspector } from '../inspect/inspector.ts';
import { readQuestion } from '../inspect/question.ts';
import { systemClock } from '../lib/clock.ts';
import { families } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { PlannedFamily } from '../proxier/planned-family.ts';
import type { CtlOptions } from './flags.ts';
import type { AskedPacket, ReportSource } from './source.ts';

/** Answers from manifests alone: the decisions of a proxy with this configuration on that node. */
export async function manifestSource(ctlOptions: CtlOptions, logger: Logger): Promise<ReportSource> {
  const options = proxyOptions(ctlOptions);
  const draft = await complete(options, logger);
  const completed = { ...draft, config: validated(draft.config, draft.gates, () => {}) };
  const mode = await loadMode(completed.config.mode);
  const start = await planOnce({ options, completed, mode, logger }, new Set(families));
  return reports(inspectorOf(start), () => start.cluster.source.stop());
}

function inspectorOf(start: PlannedStart): Inspector {
  const { mode, nodeName, nodeStart, addresses, planned, setAside } = start;
  return new Inspector({
    version: KUBERNETES_VERSION,
    mode: mode.name,
    nodeName,
    startTime: systemClock.now(),
    families: planned.map((family) => ({
      view: viewOf(family),
      nodeIP: addresses.ips[family.family],
      rules: mode.packetRules(modeContext(family.family, start)),
      facts: () => nodeFactsOf(family.family, start, nodeStart.nodeIPs, family.serviceCIDRs),
      kernel: 'the answer comes from manifests',
      interfaceTowards: async () => '',
    })),
    health: () => undefined,
    setAside: () => setAside.objects(),
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
