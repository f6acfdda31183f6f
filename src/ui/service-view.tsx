import { useMemo } from 'preact/hooks';
import type { EndpointList, EndpointReport, ServiceList, ServiceReport } from '../inspect/api.ts';
import { balanceText, departedText } from '../inspect/explanation-words.ts';
import type { TrafficItem, TrafficReport } from '../inspect/traffic-api.ts';
import { spanText } from '../lib/quantity-text.ts';
import { useAsked } from './asked.ts';
import { BoundClients } from './bound-clients.tsx';
import { Clients } from './clients.tsx';
import { Copies } from './copies.tsx';
import { ExplainView } from './explain-view.tsx';
import { JournalList } from './journal-list.tsx';
import { useKeys } from './keys.tsx';
import { lanesOf } from './lanes.ts';
import { LanesView } from './lanes-view.tsx';
import type { Live } from './live.ts';
import { go } from './navigate.ts';
import { Fact } from './node-summary.tsx';
import { type Asked, allServices, servicesHash } from './route.ts';
import { rowOf } from './service-row.ts';
import { State } from './services-table.tsx';
import { TraceView } from './trace-view.tsx';

interface ServiceProps {
  readonly live: Live;
  readonly namespace: string;
  readonly name: string;
  readonly question: Asked;
}

/** One Service: for each of its ports, where new connections go and why. */
export function ServiceView({ live, namespace, name, question }: ServiceProps) {
  const query = { name: `${namespace}/${name}` };
  const services = useAsked<ServiceList>('services', query);
  const endpoints = useAsked<EndpointList>('endpoints', query);
  const traffic = useAsked<TrafficReport>(live.rates && 'traffic', { by: 'endpoint', ...query });
  useKeys({ Escape: () => go({ view: 'services', filter: allServices }) });
  const { report } = services;
  const ask = (news: Asked) => go({ view: 'service', namespace, name, question: news });
  const ports = report?.items.toSorted((a, b) => (portKey(a) < portKey(b) ? -1 : 1)) ?? [];
  return (
    <>
      <p class="path">
        <a href={servicesHash()}>All Services</a>
      </p>
      <h2 class="title">
        {namespace}/{name}
      </h2>
      {!report && <p class="calm">{services.error ?? 'Reading the Service…'}</p>}
      {report?.items.length === 0 && (
        <p class="calm" role="status">
          The proxy has no Service of this name. It may have been deleted.
        </p>
      )}
      {ports.map((port) => (
        <Port
          key={portKey(port)}
          port={port}
          endpoints={endpoints.report?.items ?? []}
          traffic={traffic.report?.items}
          nodeIP={live.status?.families.find(({ family }) => family === port.family)?.nodeIP ?? ''}
          {...{ question, ask }}
        />
      ))}
      {traffic.report && <Clients name={query.name} ask={ask} ports={ports} />}
      {ports.some(({ affinitySeconds }) => affinitySeconds > 0) && <BoundClients name={query.name} />}
      {report && (
        <section aria-labelledby="events">
          <h2 id="events">Last hour</h2>
          <JournalList query={query} />
        </section>
      )}
      <Copies command={`services ${query.name}`} page="services" query={query} />
    </>
  );
}

function portKey({ service, family }: ServiceReport): string {
  return `${service} ${family}`;
}

interface PortProps {
  readonly port: ServiceReport;
  readonly endpoints: readonly EndpointReport[];
  readonly traffic: readonly TrafficItem[] | undefined;
  readonly nodeIP: string;
  readonly question: Asked;
  readonly ask: (question: Asked) => void;
}

function Port({ port, endpoints, traffic, nodeIP, question, ask }: PortProps) {
  const own = useMemo(
    () => endpoints.filter(({ service, family }) => service === port.service && family === port.family),
    [endpoints, port.service, port.family],
  );
  const lanes = useMemo(() => lanesOf(port, own, nodeIP), [port, own, nodeIP]);
  const figures = traffic?.filter(
    ({ service, family }) => service === port.service && family === port.family,
  );
  const isAsked = lanes.frontends.some(({ destination }) => destination === question.to);
  const { state } = rowOf(port);
  return (
    <section class="port" aria-label={`${port.service} ${port.family}`}>
      <h3>
        {port.service} <small>{port.family}</small> <State state={state} />
      </h3>
      <Settings port={port} />
      <LanesView {...{ lanes, question, ask }} traffic={figures} family={port.family} />
      {isAsked && <ExplainView {...{ question, ask }} basis={basisOf(port, own)} />}
      {isAsked && <TraceView service={port.service} />}
    </section>
  );
}

/** A text that changes when the answer to `explain` may have changed. */
function basisOf(port: ServiceReport, endpoints: readonly EndpointReport[]): string {
  const used = endpoints.map(({ endpoint, pod, usedBy }) => `${endpoint} ${pod} ${usedBy}`);
  return JSON.stringify([port, used]);
}

function Settings({ port }: { port: ServiceReport }) {
  const { affinitySeconds, loadBalancerSourceRanges, topology, healthCheckNodePort, direct } = port;
  const facts: [string, string][] = [];
  if (direct) facts.push(['Not captured', direct.reason]);
  if (affinitySeconds > 0) facts.push(['Affinity', `client IP, for ${spanText(affinitySeconds * 1000)}`]);
  const balance = balanceText(port);
  if (balance !== undefined) facts.push(['Balance', balance]);
  const departed = departedText(port);
  if (departed !== undefined) facts.push(['Departed endpoints', departed]);
  if (loadBalancerSourceRanges.length > 0) facts.push(['Open to', loadBalancerSourceRanges.join(', ')]);
  if (topology.mode !== 'none') facts.push(['Topology', `${topology.mode}: ${topology.reason}`]);
  if (healthCheckNodePort > 0) facts.push(['Health check', `port ${healthCheckNodePort}`]);
  if (facts.length === 0) return null;
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </dl>
  );
}
