import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { API_PATH, API_VERSION } from '../../src/inspect/api.ts';
import type {
  AffinityItem,
  AffinityReport,
  FlowEvent,
  FlowItem,
  FlowList,
  TrafficItem,
  TrafficReport,
} from '../../src/inspect/traffic-api.ts';
import { http } from '../../src/lib/http.ts';
import { RecordedTerminal } from './terminal.ts';

/** A proxy that has the pages about traffic, with the answers of a test. */
export class TrafficServer {
  /** The queries of every question about traffic and flows. */
  readonly asked: string[] = [];
  /** The next answers; the last one stays. */
  readings: TrafficReport[] = [trafficReport([])];
  flows: FlowList = flowList([]);
  affinity: AffinityReport = affinityReport([]);
  /** What services are found by any name. */
  services: readonly string[] = ['shop/web:http/TCP'];
  affinitySeconds = 0;
  readonly #server = http.createServer((request, response) => this.#answer(request.url ?? '', response));
  readonly #watchers = new Set<ServerResponse>();
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Listens, also again after `close`, at the same port. */
  async listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Runs `kube-proxyctl COMMAND ARGS` against this server. */
  async run(command: string, args: string, columns?: number): Promise<RecordedTerminal> {
    const terminal = new RecordedTerminal(columns);
    await terminal.run(`${command} --server ${this.url} ${args}`.trim());
    return terminal;
  }

  /** Sends text to everybody who watches. */
  send(text: string): void {
    for (const response of this.#watchers) response.write(text);
  }

  /** Ends all connections, as a proxy that restarts. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    this.#watchers.clear();
    await closed;
  }

  #answer(url: string, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(url, this.url);
    const page = pathname.slice(API_PATH.length);
    if (page === 'services') {
      const { affinitySeconds } = this;
      const items = this.services.map((service) => ({ service, affinitySeconds }));
      response.end(JSON.stringify({ apiVersion: API_VERSION, kind: 'ServiceList', items }));
      return;
    }
    this.asked.push(`${page}?${searchParams}`);
    if (page === 'traffic') {
      const next = this.readings.length > 1 ? this.readings.shift() : this.readings[0];
      response.end(JSON.stringify(next));
    } else if (page === 'affinity') {
      response.end(JSON.stringify(this.affinity));
    } else if (searchParams.get('watch') === 'true') {
      response.flushHeaders();
      this.#watchers.add(response);
      response.on('close', () => this.#watchers.delete(response));
    } else {
      response.end(JSON.stringify(this.flows));
    }
  }
}

export const none = { rejected: 0, dropped: 0, filtered: 0, reset: 0, unanswered: 0 };

export function trafficItem(service: string, figures: Partial<TrafficItem> = {}): TrafficItem {
  return {
    service,
    family: 'IPv4',
    endpoint: null,
    pod: null,
    zone: null,
    expectedShare: null,
    client: null,
    opened: 0,
    ended: 0,
    open: 0,
    packetsToEndpoint: 0,
    packetsToClient: 0,
    bytesToEndpoint: 0,
    bytesToClient: 0,
    failed: none,
    ...figures,
  };
}

export function trafficReport(
  items: readonly TrafficItem[],
  fields: Partial<TrafficReport> = {},
): TrafficReport {
  return {
    apiVersion: API_VERSION,
    kind: 'Traffic',
    mode: 'nftables',
    time: '2026-01-01T00:00:00Z',
    since: '2026-01-01T00:00:00Z',
    by: 'service',
    lostEvents: 0,
    leftOut: 0,
    families: [{ family: 'IPv4', error: null, warning: null }],
    items,
    ...fields,
  };
}

export function flowItem(client: string, fields: Partial<FlowItem> = {}): FlowItem {
  return {
    family: 'IPv4',
    protocol: 'TCP',
    client,
    frontend: '10.96.0.10:80',
    service: 'shop/web:http/TCP',
    endpoint: '10.244.1.5:8080',
    pod: 'shop/web-7d4b9c5f6d-x2x9k',
    state: 'ESTABLISHED',
    ageSeconds: 75,
    packetsToEndpoint: 10,
    packetsToClient: 12,
    bytesToEndpoint: 1_500,
    bytesToClient: 20_000,
    ...fields,
  };
}

export function flowList(items: readonly FlowItem[], fields: Partial<FlowList> = {}): FlowList {
  return {
    apiVersion: API_VERSION,
    kind: 'FlowList',
    mode: 'nftables',
    time: '2026-01-01T00:00:00Z',
    families: [{ family: 'IPv4', error: null }],
    items,
    ...fields,
  };
}

export function affinityReport(
  items: readonly AffinityItem[],
  fields: Partial<AffinityReport> = {},
): AffinityReport {
  return {
    apiVersion: API_VERSION,
    kind: 'AffinityList',
    mode: 'nftables',
    time: '2026-01-01T00:00:00Z',
    leftOut: 0,
    families: [{ family: 'IPv4', error: null }],
    items,
    ...fields,
  };
}

export function flowEvent(event: FlowEvent['event'], flow: FlowItem | null, reason?: string): FlowEvent {
  return {
    apiVersion: API_VERSION,
    kind: 'FlowEvent',
    time: '2026-01-01T00:00:00Z',
    event,
    flow,
    reason: reason ?? null,
    count: 1,
  };
}
