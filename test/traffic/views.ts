/** The same figures in every place where people look at them: the API, kube-proxyctl top, Prometheus and the page. */
import assert from 'node:assert/strict';
import type { RatesReport } from '../../src/ctl/traffic-rates.ts';
import type { EndpointList, ServiceList, StatusReport } from '../../src/inspect/api.ts';
import type { TrafficGrouping, TrafficItem, TrafficReport } from '../../src/inspect/traffic-api.ts';
import { lanesOf } from '../../src/ui/lanes.ts';
import { figuresText, openedToEndpoints, type Rate, Rates } from '../../src/ui/rates.ts';
import { rowOf } from '../../src/ui/service-row.ts';
import { namespace, serviceName } from '../contract/objects.ts';
import type { Scene } from '../contract/scene.ts';
import { printed } from '../ctl/ctl.ts';
import { inspect, METRICS_URL } from '../program/served-pages.ts';
import { type Figures, figuresOf, hostAt, subjectOf } from './ledger.ts';

/** Reads the figures of the Services of a story, in the family of its scene. */
export class Views {
  readonly scene: Scene;
  /** By the name of the Service in the cluster. */
  readonly #names: ReadonlyMap<string, string>;

  constructor(scene: Scene, names: readonly string[]) {
    this.scene = scene;
    this.#names = new Map(names.map((name) => [serviceName(scene.service(name).n), name]));
  }

  /** The items of a Service of the story in the family of the scene, by its name in the story. */
  byService<Item extends { readonly service: string; readonly family: string }>(
    items: readonly Item[],
  ): ReadonlyMap<string, readonly Item[]> {
    const own = items.filter(({ family }) => family === this.scene.book.family);
    const named = Map.groupBy(own, ({ service }) => this.nameOf(service));
    named.delete('');
    return named;
  }

  /** The name in the story of a service port; '' when it is of another story. */
  nameOf(service: string): string {
    const [, name = ''] = /^[^/]*\/([^:]*)/.exec(service) ?? [];
    return this.#names.get(name) ?? '';
  }

  async traffic(by: TrafficGrouping): Promise<TrafficReport> {
    const report = await inspect<TrafficReport>('traffic', { by, namespace });
    assert.equal(report.lostEvents, 0);
    return report;
  }

  /** What the API answers. */
  async api(by: TrafficGrouping): Promise<Figures> {
    return this.#figures((await this.traffic(by)).items);
  }

  /** What `kube-proxyctl top` prints. */
  async top(by: TrafficGrouping): Promise<Figures> {
    return this.#figures((await this.topReport(by)).items);
  }

  async topReport(by: TrafficGrouping): Promise<RatesReport> {
    const text = await printed(`top -n ${namespace} --by ${by} -o json --interval 1ms`);
    return JSON.parse(text) as RatesReport;
  }

  /** What Prometheus reads, by service port. */
  async metrics(): Promise<Figures> {
    const figures: Figures = new Map();
    for (const [port, times] of await this.metric('connections_total')) figures.set(`${port} opened`, times);
    for (const [key, bytes] of await this.metric('bytes_total', 'direction')) {
      if (key.includes('/udp ')) figures.set(key.replace(' ', ' bytes '), bytes);
    }
    return figures;
  }

  /** Samples of one metric, by service port; `label` is added to the key. */
  async metric(wanted: string, label = ''): Promise<Figures> {
    const figures: Figures = new Map();
    for (const { name, labels, value } of await samples()) {
      const service = this.#names.get(labels.service ?? '');
      if (name !== wanted || service === undefined || value === 0) continue;
      figures.set([`${service}/${labels.port}`, labels[label]].filter(Boolean).join(' '), value);
    }
    return figures;
  }

  /** The rates of the page's table, by service port of the story. */
  rates(reports: readonly TrafficReport[]): ReadonlyMap<string, Rate> {
    const rates = new Rates();
    let last: ReadonlyMap<string, Rate> = new Map();
    for (const report of reports) last = rates.update(report);
    const { book } = this.scene;
    const found = new Map<string, Rate>();
    for (const item of reports.at(-1)?.items ?? []) {
      const name = this.nameOf(item.service);
      const rate = last.get(`${item.service} ${item.family}`);
      if (name !== '' && item.family === book.family && rate) found.set(subjectOf(name, item, book), rate);
    }
    return found;
  }

  /** What the page says of each endpoint in the lanes of its service port, by `web/tcp to A`. */
  async lanes(): Promise<ReadonlyMap<string, string>> {
    const { book } = this.scene;
    const services = (await inspect<ServiceList>('services', { namespace })).items;
    const endpoints = this.byService((await inspect<EndpointList>('endpoints', { namespace })).items);
    const traffic = this.byService((await this.traffic('endpoint')).items);
    const { families } = await inspect<StatusReport>('status');
    const nodeIP = families.find(({ family }) => family === book.family)?.nodeIP ?? '';
    const texts = new Map<string, string>();
    for (const [name, ports] of this.byService(services)) {
      for (const port of ports) {
        const ofPort = <Item extends { readonly service: string }>(items: readonly Item[] = []) =>
          items.filter(({ service }) => service === port.service);
        const figures: TrafficItem[] = ofPort(traffic.get(name));
        const lanes = lanesOf(port, ofPort(endpoints.get(name)), nodeIP);
        assert.equal(rowOf(port).key, `${port.service} ${book.family}`);
        for (const { report } of lanes.endpoints) {
          const item = figures.find(({ endpoint }) => endpoint === report.endpoint);
          const key = `${name}/${port.protocol.toLowerCase()} to ${hostAt(report.endpoint, book)}`;
          if (item) texts.set(key, figuresText(item, openedToEndpoints(figures)));
        }
      }
    }
    return texts;
  }

  #figures(items: readonly TrafficItem[]): Figures {
    const { book } = this.scene;
    return new Map([...this.byService(items)].flatMap(([name, own]) => [...figuresOf(name, own, book)]));
  }
}

interface MetricSample {
  /** Without the beginning that all metrics of Services have. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of the metrics of Services. */
async function samples(): Promise<MetricSample[]> {
  const page = await (await fetch(METRICS_URL)).text();
  return [...page.matchAll(/^kubeproxy_ts_service_(\w+)\{(.*)\} (\S+)$/gm)].map(
    ([, name = '', labels = '', value]) => ({
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]),
      ),
      value: Number(value),
    }),
  );
}
