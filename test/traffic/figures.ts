import assert from 'node:assert/strict';
import type { TrafficGrouping, TrafficReport } from '../../src/inspect/traffic-api.ts';
import { percentText } from '../../src/lib/quantity-text.ts';
import { formatIP, splitIPPort } from '../../src/model/ip.ts';
import type { Scene } from '../contract/scene.ts';
import { eventuallyEqual } from '../eventually.ts';
import { FlowWatcher } from './flow-watcher.ts';
import { type Figures, Ledger, type Sending, sorted, subjectOf } from './ledger.ts';
import { services } from './services.ts';
import { Views } from './views.ts';

const groupings: readonly TrafficGrouping[] = ['service', 'endpoint', 'client'];

/** Connections that are answered: who sends how many, and where to. */
const packets: readonly Sending[] = [
  { from: 'pod', to: 'clusterIP', transport: 'tcp', times: 7 },
  { from: 'node', to: 'clusterIP', transport: 'tcp', times: 3 },
  { from: 'client', to: 'nodePort', transport: 'tcp', times: 5 },
  { from: 'stranger', to: 'nodePort', transport: 'tcp', times: 2 },
  { from: 'client', to: 'external', transport: 'tcp', times: 2 },
  { from: 'pod', to: 'clusterIP', transport: 'udp', times: 6 },
  { from: 'node', to: 'clusterIP', transport: 'udp', times: 2 },
  { from: 'client', to: 'nodePort', transport: 'udp', times: 4 },
  { from: 'pod', to: 'clusterIP', of: 'sticky', transport: 'tcp', times: 5 },
  { from: 'node', to: 'clusterIP', of: 'sticky', transport: 'tcp', times: 2 },
  { from: 'client', to: 'nodePort', of: 'sticky', transport: 'tcp', times: 3 },
  { from: 'pod', to: 'clusterIP', of: 'sticky', transport: 'udp', times: 3 },
  { from: 'client', to: 'nodePort', of: 'near', times: 4 },
  { from: 'client', to: 'loadBalancer', of: 'ranged', times: 2 },
];

/** Every view has exactly the connections, and the bytes of datagrams, that were sent. */
export async function checkFigures(scene: Scene, forwardsItself: boolean): Promise<void> {
  const views = new Views(scene, Object.keys(services));
  const ledger = new Ledger(scene, forwardsItself);
  const before = await views.traffic('service');
  const watcher = await FlowWatcher.open();
  try {
    for (const packet of packets) await ledger.send(packet);
    const { service, endpoint, client } = ledger.figures;
    for (const by of groupings) {
      await eventuallyEqual(
        `the API answers with the figures by ${by}`,
        () => views.api(by),
        ledger.figures[by],
      );
    }
    await eventuallyEqual('the flows that opened were told', () => openings(watcher, views), {
      service: opened(service),
      endpoint: opened(endpoint),
      client: opened(client),
    });
    for (const by of groupings) assert.deepEqual(sorted(await views.top(by)), sorted(ledger.figures[by]));
    await eventuallyEqual('Prometheus reads the figures', () => views.metrics(), service);
    await checkPage(views, before, ledger);
  } finally {
    watcher.close();
  }
}

/** What the page makes of two answers: rates, times the time between the answers, are what was sent in that time. */
async function checkPage(views: Views, before: TrafficReport, { figures }: Ledger): Promise<void> {
  const now = await views.traffic('service');
  const seconds = (Date.parse(now.time) - Date.parse(before.time)) / 1000;
  const shown: Figures = new Map();
  const wanted: Figures = new Map();
  for (const [key, { connections, opened, bytes }] of views.rates([before, now])) {
    if (opened === 0) continue;
    shown.set(`${key} opened`, Math.round(connections * seconds));
    if (key.endsWith('/udp')) shown.set(`${key} bytes`, Math.round((bytes ?? Number.NaN) * seconds));
  }
  for (const [key, amount] of figures.service) {
    const whole = key.replace(/ (in|out)$/, '');
    wanted.set(whole, (wanted.get(whole) ?? 0) + amount);
  }
  assert.deepEqual(sorted(shown), sorted(wanted));
  const texts = await views.lanes();
  for (const [key, amount] of opened(figures.endpoint)) {
    const all = figures.service.get(`${key.replace(/ to .*/, '')} opened`) ?? 0;
    const measured = `measured ${percentText(amount / all)} of ${all}`;
    assert.match(texts.get(key) ?? '', new RegExp(`^\\d+ open, ${measured}$`), key);
  }
}

/** Only the connections, without `opened` at the end of the keys. */
function opened(figures: Figures): Figures {
  const kept = [...figures].filter(([key]) => key.endsWith(' opened'));
  return new Map(kept.map(([key, amount]) => [key.replace(/ opened$/, ''), amount]));
}

/** Openings that a watcher was told, by service port, endpoint and client. */
function openings({ events }: FlowWatcher, views: Views): Record<TrafficGrouping, Figures> {
  const found = { service: new Map(), endpoint: new Map(), client: new Map() };
  const add = (figures: Figures, key: string) => figures.set(key, (figures.get(key) ?? 0) + 1);
  for (const { event, flow } of events) {
    const name = flow ? views.nameOf(flow.service) : '';
    if (event !== 'Opened' || !flow || name === '') continue;
    const { service, endpoint } = flow;
    const client = splitIPPort(flow.client);
    const subject = (item: { endpoint: string | null; client: string | null }) =>
      subjectOf(name, { service, ...item }, views.scene.book);
    add(found.service, subject({ endpoint: null, client: null }));
    if (endpoint !== null) add(found.endpoint, subject({ endpoint, client: null }));
    add(found.client, subject({ endpoint: null, client: client ? formatIP(client.ip) : flow.client }));
  }
  return found;
}
