import type { DecisionReport, EndpointReport, ServiceReport } from '../inspect/api.ts';
import { count } from '../lib/count.ts';
import { joinHostPort } from '../model/ip.ts';
import type { Paint } from './terminal.ts';
import { fieldsText, spanText, tableText } from './text.ts';

/** One line per service port. */
export function servicesText(services: readonly ServiceReport[], paint: Paint): string {
  const rows = services.map((service) => [
    service.service,
    service.family,
    joinHostPort(service.clusterIP, service.port),
    service.nodePort === 0 ? '-' : String(service.nodePort),
    [...service.externalIPs, ...service.loadBalancerIPs].join(',') || '-',
    decisionText(service.internal, service, paint),
    service.external ? decisionText(service.external, service, paint) : '-',
  ]);
  const headings = ['SERVICE PORT', 'FAMILY', 'CLUSTER IP', 'NODE PORT', 'EXTERNAL', 'INSIDE', 'OUTSIDE'];
  const notes = services.flatMap((service) => {
    return lostTexts(service).map((text) => `${service.service}, ${service.family}: no ${text}\n`);
  });
  return tableText(headings, rows) + (notes.length > 0 ? `\n${notes.join('')}` : '');
}

/** Everything about each service port, with the reasons. */
export function serviceDetailsText(services: readonly ServiceReport[], paint: Paint): string {
  return services.map((service) => detailsOf(service, paint)).join('\n');
}

function detailsOf(service: ServiceReport, paint: Paint): string {
  const { internal, external, topology, endpoints } = service;
  const reasoned = (decision: DecisionReport) =>
    `${decisionText(decision, service, paint)}: ${decision.reason}`;
  const fields = fieldsText([
    ['cluster IP', joinHostPort(service.clusterIP, service.port)],
    ['node port', service.nodePort === 0 ? undefined : String(service.nodePort)],
    ['external IPs', service.externalIPs.join(', ')],
    ['load balancer IPs', service.loadBalancerIPs.join(', ')],
    ['open to', service.loadBalancerSourceRanges.join(', ')],
    [
      'health check port',
      service.healthCheckNodePort === 0 ? undefined : String(service.healthCheckNodePort),
    ],
    ['affinity', affinityText(service.affinitySeconds)],
    ['from inside', reasoned(internal)],
    ['from outside', external ? reasoned(external) : undefined],
    ['does not have', lostTexts(service).join(', ')],
    ['topology', `${topology.mode}: ${topology.reason}`],
    [
      'endpoints',
      `${endpoints.known} known, ${endpoints.cluster} in set Cluster, ${endpoints.local} in set Local`,
    ],
  ]);
  return `${paint('bold', service.service)} (${service.family})\n${fields}`;
}

function lostTexts({ lost = [] }: ServiceReport): string[] {
  return lost.map(({ frontend, owner }) => `${frontend}, which belongs to service port ${owner}`);
}

function decisionText(decision: DecisionReport, { endpoints }: ServiceReport, paint: Paint): string {
  if (decision.action !== 'forward') return paint('yellow', decision.action);
  const used = decision.endpoints === 'local' ? endpoints.local : endpoints.cluster;
  return `${count(used, 'endpoint')}${decision.endpoints === 'local' ? ' on this node' : ''}`;
}

function affinityText(seconds: number): string | undefined {
  return seconds === 0 ? undefined : `ClientIP for ${spanText(seconds * 1000)}`;
}

/** One line per endpoint, with the reason why it takes traffic or does not. */
export function endpointsText(endpoints: readonly EndpointReport[], paint: Paint): string {
  const rows = endpoints.map((endpoint) => [
    endpoint.service,
    endpoint.endpoint,
    stateText(endpoint),
    endpoint.local ? 'yes' : 'no',
    hintsText(endpoint),
    endpoint.usedBy.length > 0 ? endpoint.reason : paint('grey', endpoint.reason),
  ]);
  return tableText(['SERVICE PORT', 'ENDPOINT', 'STATE', 'THIS NODE', 'HINTS', 'WHY'], rows);
}

function stateText({ ready, serving, terminating }: EndpointReport): string {
  if (terminating) return serving ? 'terminating, serving' : 'terminating';
  return ready ? 'ready' : 'not ready';
}

function hintsText({ zoneHints = [], nodeHints = [] }: EndpointReport): string {
  const hints = [...zoneHints.map((zone) => `zone ${zone}`), ...nodeHints.map((node) => `node ${node}`)];
  return hints.join(', ') || '-';
}
