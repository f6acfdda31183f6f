import assert from 'node:assert/strict';
import type { FailedConnections, FlowEvent, TrafficReport } from '../../src/inspect/traffic-api.ts';
import type { Landscape } from '../contract/landscape.ts';
import { podPort } from '../contract/objects.ts';
import type { Scene } from '../contract/scene.ts';
import { eventuallyEqual } from '../eventually.ts';
import { FlowWatcher } from './flow-watcher.ts';
import { type Figures, type Sending, sorted, subjectOf } from './ledger.ts';
import type { TrafficOptions } from './services.ts';
import { Views } from './views.ts';

interface Failing extends Sending {
  readonly of: string;
  readonly as: keyof FailedConnections;
}

/** Connections that fail, and as what. */
const failing: readonly Failing[] = [
  { from: 'pod', to: 'clusterIP', of: 'lonely', transport: 'tcp', times: 3, as: 'rejected' },
  { from: 'node', to: 'clusterIP', of: 'lonely', transport: 'tcp', times: 2, as: 'rejected' },
  { from: 'pod', to: 'clusterIP', of: 'lonely', transport: 'udp', times: 2, as: 'rejected' },
  { from: 'client', to: 'nodePort', of: 'lonely', transport: 'tcp', times: 2, as: 'rejected' },
  { from: 'client', to: 'nodePort', of: 'lonely', transport: 'udp', times: 3, as: 'rejected' },
  { from: 'client', to: 'nodePort', of: 'local', transport: 'tcp', times: 2, as: 'dropped' },
  { from: 'client', to: 'nodePort', of: 'local', transport: 'udp', times: 3, as: 'dropped' },
  { from: 'stranger', to: 'loadBalancer', of: 'ranged', transport: 'tcp', times: 2, as: 'filtered' },
  { from: 'stranger', to: 'loadBalancer', of: 'ranged', transport: 'udp', times: 3, as: 'filtered' },
  { from: 'pod', to: 'clusterIP', of: 'closed', times: 3, as: 'reset' },
  { from: 'pod', to: 'clusterIP', of: 'silent', times: 2, as: 'unanswered' },
];

/** Sends connections that fail, and one that does not to each Service where others do. */
export async function checkFailures(
  scene: Scene,
  landscape: Landscape,
  options: TrafficOptions,
): Promise<void> {
  const { forwardsItself = false, bendsPolicyLocal = false } = options;
  const sending = failing.filter(({ as }) => as !== 'dropped' || !bendsPolicyLocal);
  const views = new Views(scene, [...new Set(failing.map((packet) => packet.of))]);
  const before = await views.traffic('service');
  const watcher = await FlowWatcher.open();
  try {
    const host = landscape.host('C');
    await host.stop(podPort, 'tcp');
    const wanted = await fail(scene, sending, forwardsItself).finally(() => host.serve(podPort, 'tcp'));
    await scene.answerer({ from: 'client', to: 'loadBalancer', of: 'ranged' });
    await scene.answerer({ from: 'pod', to: 'nodePort', of: 'local' });
    await checkFailureViews(views, before, watcher, wanted);
  } finally {
    watcher.close();
  }
}

/** Sends all of them at once; returns what is to be counted. */
async function fail(scene: Scene, sendings: readonly Failing[], forwardsItself: boolean): Promise<Figures> {
  const wanted: Figures = new Map();
  const sent = sendings.flatMap(({ times, as, ...packet }) => {
    const key = `${packet.of}/${packet.transport ?? 'tcp'} ${as}`;
    // A process that forwards accepts a connection before it tries to reach an endpoint.
    const isNoticed = !forwardsItself || (as !== 'reset' && as !== 'unanswered');
    if (isNoticed) wanted.set(key, (wanted.get(key) ?? 0) + times);
    return Array.from({ length: times }, async () => ({ key, outcome: await scene.outcome(packet) }));
  });
  for (const { key, outcome } of await Promise.all(sent)) assert.notEqual(outcome.kind, 'answered', key);
  return wanted;
}

async function checkFailureViews(
  views: Views,
  before: TrafficReport,
  watcher: FlowWatcher,
  wanted: Figures,
): Promise<void> {
  const failed = (report: Pick<TrafficReport, 'items'>) => failures(views, report);
  const look = async () => failed(await views.traffic('service'));
  await eventuallyEqual('the failures are those of the connections', look, wanted, { withinMs: 60_000 });
  assert.deepEqual(sorted(failed(await views.topReport('service'))), sorted(wanted));
  const metric = async () => answered(await views.metric('failed_connections_total', 'reason'));
  await eventuallyEqual('Prometheus reads the failures', metric, answered(wanted));
  const shown: Figures = new Map();
  for (const [key, { failing }] of views.rates([before, await views.traffic('service')])) {
    if (failing > 0) shown.set(key, failing);
  }
  assert.deepEqual(sorted(shown), sorted(failingOnThePage(wanted)));
  const refused = [...wanted].filter(([key]) => Object.values(verdicts).some((as) => key.endsWith(` ${as}`)));
  await eventuallyEqual(
    'refusals are told with their reason',
    () => refusals(watcher, views),
    new Map(refused),
  );
}

/** Connections without an answer show in metrics only if they are read while these wait. */
function answered(failures: Figures): Figures {
  return new Map([...failures].filter(([key]) => !key.endsWith(' unanswered')));
}

/** What the page draws attention to: connections that reached an endpoint, or should have. */
function failingOnThePage(failures: Figures): Figures {
  const found: Figures = new Map();
  for (const [key, times] of failures) {
    const [, port = '', as = ''] = /^(.*) (\w+)$/.exec(key) ?? [];
    if (as === 'reset' || as === 'unanswered') found.set(port, (found.get(port) ?? 0) + times);
  }
  return found;
}

function failures(views: Views, { items }: Pick<TrafficReport, 'items'>): Figures {
  const found: Figures = new Map();
  for (const [name, own] of views.byService(items)) {
    for (const item of own) {
      for (const [as, times] of Object.entries(item.failed)) {
        if (times > 0) found.set(`${subjectOf(name, item, views.scene.book)} ${as}`, times);
      }
    }
  }
  return found;
}

const verdicts: Partial<Record<FlowEvent['event'], keyof FailedConnections>> = {
  Rejected: 'rejected',
  Dropped: 'dropped',
  Filtered: 'filtered',
};
const reasons: Readonly<Record<string, RegExp>> = {
  rejected: /no endpoints/,
  dropped: /Local/,
  filtered: /in none of the admitted ranges/,
};

function refusals({ events }: FlowWatcher, views: Views): Figures {
  const found: Figures = new Map();
  for (const { event, flow, reason } of events) {
    const as = verdicts[event];
    const name = flow ? views.nameOf(flow.service) : '';
    if (as === undefined || !flow || name === '') continue;
    assert.match(reason ?? '', reasons[as] ?? /^$/);
    const key = `${subjectOf(name, { service: flow.service, endpoint: null, client: null }, views.scene.book)} ${as}`;
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return found;
}
