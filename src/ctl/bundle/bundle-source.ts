import {
  API_VERSION,
  type DiffReport,
  type EndpointList,
  type JournalReport,
  type NodeReport,
  type ServiceList,
  type StatusReport,
} from '../../inspect/api.ts';
import { Inspector } from '../../inspect/inspector.ts';
import { Journal } from '../../inspect/journal.ts';
import { isServiceNamed, selectFromJournal } from '../../inspect/journal-report.ts';
import { readQuestion } from '../../inspect/question.ts';
import { isAddress, type Selector } from '../../inspect/selection.ts';
import { systemClock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { AskedPacket, ReportSource } from '../source.ts';
import { type BundleContents, CONTENTS } from './contents.ts';
import { replan } from './replanned.ts';
import { unpack } from './tar.ts';

const used = /^(?:contents|status|node|services|endpoints|diff|journal|configz)\.json$/;

/**
 * Answers from an archive of `kube-proxyctl bundle`, as the proxy would have answered when it was written. `explain` has
 * only the side of the decisions. Rejects when the archive cannot be read.
 */
export async function bundleSource(path: string): Promise<ReportSource> {
  const bundle = await Bundle.read(path);
  const status = () => bundle.report<StatusReport>('status');
  const services = once(() => bundle.report<ServiceList>('services'));
  const endpoints = once(() => bundle.report<EndpointList>('endpoints'));
  const inspector = once(() => inspectorOf(bundle, services().items, endpoints().items));
  const selected = async (selector: Selector) => (await inspector()).services(selector);
  const elsewhere = async () => {
    throw new Error('an archive has no live traffic: this needs a running kube-proxy');
  };
  return {
    status: async () => status(),
    async services(selector = {}) {
      const keys = new Set(
        [...(await selected(selector))].map(({ service, family }) => `${family} ${service}`),
      );
      const items = services().items.filter(({ service, family }) => keys.has(`${family} ${service}`));
      return { ...services(), items };
    },
    async endpoints(selector = {}) {
      const keyOf = ({ service, family, endpoint }: EndpointList['items'][number]) =>
        `${family} ${service} ${endpoint}`;
      const keys = new Set([...(await (await inspector()).endpoints(selector))].map(keyOf));
      return { ...endpoints(), items: endpoints().items.filter((item) => keys.has(keyOf(item))) };
    },
    explain: async (packet) =>
      (await inspector()).explain(readQuestion((name) => packet[name as keyof AskedPacket] ?? null)),
    diff: async () => bundle.report<DiffReport>('diff'),
    async journal({ since, ...selector } = {}) {
      const { name = '', namespace = '' } = selector;
      const report = bundle.report<JournalReport>('journal');
      if (name === '' && namespace === '') return selectFromJournal(report, since, undefined);
      const known = isAddress(name)
        ? new Set([...(await selected(selector))].map((item) => `${item.namespace}/${item.name}`))
        : undefined;
      return selectFromJournal(report, since, (service) =>
        known ? known.has(service) : isServiceNamed(service, selector),
      );
    },
    traffic: elsewhere,
    affinity: elsewhere,
    flows: elsewhere,
    watchFlows: elsewhere,
    async close() {},
  };
}

/** The files of an archive. */
class Bundle {
  readonly #path: string;
  readonly #files: ReadonlyMap<string, string>;

  private constructor(path: string, files: ReadonlyMap<string, string>) {
    this.#path = path;
    this.#files = files;
  }

  static async read(path: string): Promise<Bundle> {
    try {
      return new Bundle(path, await unpack(path, (name) => used.test(name)));
    } catch (error) {
      throw new Error(`cannot read the archive ${path}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Throws when the archive does not have the file, with the reason that it has. */
  text(name: string): string {
    const text = this.#files.get(`${name}.json`);
    if (text !== undefined) return text;
    const list = this.#files.get(CONTENTS);
    const { missing } = JSON.parse(list ?? '{"missing":[]}') as BundleContents;
    const reason = missing.find((file) => file.name === `${name}.json`)?.reason ?? 'nobody knows why';
    throw new Error(`the archive ${this.#path} has no ${name}.json: ${reason}`);
  }

  report<Report extends { readonly apiVersion: string }>(name: string): Report {
    const report = JSON.parse(this.text(name)) as Report;
    if (report.apiVersion === API_VERSION) return report;
    throw new Error(`${name}.json in ${this.#path} has version ${report.apiVersion}, not ${API_VERSION}`);
  }
}

async function inspectorOf(
  bundle: Bundle,
  services: ServiceList['items'],
  endpoints: EndpointList['items'],
): Promise<Inspector> {
  const status = bundle.report<StatusReport>('status');
  const node = bundle.report<NodeReport>('node');
  const families = await replan({ status, node, services, endpoints, configz: bundle.text('configz') });
  return new Inspector({
    version: status.version,
    mode: status.mode,
    nodeName: status.nodeName,
    startTime: Date.parse(status.startTime),
    families,
    problems: () => [],
    sources: () => ({ kind: 'Manifests', location: '', watches: [], errors: [] }),
    configFile: () => undefined,
    setAside: () => status.setAside,
    journal: new Journal(systemClock),
    clock: systemClock,
  });
}

/** Calls `make` with the first call only. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
