import type { DecisionReport, EndpointReport, ServiceReport } from '../inspect/api.ts';
import { balanceText, departedText } from '../inspect/explanation-words.ts';
import { podText } from '../inspect/pod-text.ts';
import { count } from '../lib/count.ts';
import { joinHostPort } from '../model/ip.ts';
import { annotationPrefix, resetDepartedAnnotation } from '../model/own-annotations.ts';
import { type Column, itemsText, type Layout, unlimited } from './table.ts';
import type { Paint } from './terminal.ts';
import { fieldsText, spanText } from './text.ts';

/** The table of service ports. With `isDirect`, packets to service addresses are not captured, and it shows no others. */
export function serviceColumns(paint: Paint, isDirect = false): readonly Column<ServiceReport>[] {
  return [
    { heading: 'SERVICE PORT', cell: ({ service }) => service, least: 20 },
    { heading: 'FAMILY', cell: ({ family }) => family, leaveOut: 1 },
    ...(isDirect
      ? [{ heading: 'REACHABLE AT', cell: reachableText, least: 14 }]
      : [
          { heading: 'CLUSTER IP', cell: clusterAddressText },
          { heading: 'NODE PORT', cell: ({ nodePort }: ServiceReport) => numberText(nodePort), leaveOut: 3 },
          { heading: 'EXTERNAL', cell: externalText, least: 12, leaveOut: 2 },
        ]),
    { heading: 'INSIDE', cell: (port) => decisionText(port.internal, port, paint) },
    {
      heading: 'OUTSIDE',
      cell: (port) => (port.external ? decisionText(port.external, port, paint) : '-'),
      leaveOut: 4,
    },
    { heading: 'KNOWN', cell: ({ endpoints }) => count(endpoints.known, 'endpoint'), isExtra: true },
    {
      heading: 'AFFINITY',
      cell: ({ affinitySeconds }) => affinityText(affinitySeconds) ?? '-',
      isExtra: true,
    },
    { heading: 'TOPOLOGY', cell: ({ topology }) => topology.mode, isExtra: true },
    {
      heading: 'OPEN TO',
      cell: ({ loadBalancerSourceRanges }) => loadBalancerSourceRanges.join(',') || '-',
      isExtra: true,
    },
    {
      heading: 'HEALTH CHECK PORT',
      cell: ({ healthCheckNodePort }) => numberText(healthCheckNodePort),
      isExtra: true,
    },
  ];
}

/** One line per service port, then the addresses that belong to another one, and why addresses are not captured. */
export function servicesText(services: readonly ServiceReport[], paint: Paint, layout?: Layout): string {
  const lost = services.flatMap((service) => {
    return lostTexts(service).map((text) => `${service.service}, ${service.family}: no ${text}\n`);
  });
  const reasons = new Set(services.flatMap(({ direct }) => (direct ? [direct.reason] : [])));
  const uncaptured = [...reasons].map(
    (reason) =>
      `Packets to cluster IPs and other service addresses are not captured: ${reason}. Connect to the addresses in REACHABLE AT.\n`,
  );
  const notes = [...lost, ...unsupportedTexts(services), ...uncaptured];
  const table = itemsText(serviceColumns(paint, reasons.size > 0), services, layout);
  return table + (notes.length > 0 ? `\n${notes.join('')}` : '');
}

/** A line for each wish that this mode cannot do: all Services with an annotation may have it, so they are counted. */
function unsupportedTexts(services: readonly ServiceReport[]): string[] {
  const wishes = services.flatMap(({ unsupportedBalance, unsupportedReset }) => [
    ...(unsupportedBalance ? [`${annotationPrefix}balance=${unsupportedBalance}`] : []),
    ...(unsupportedReset ? [`${resetDepartedAnnotation}=tcp`] : []),
  ]);
  return [...Map.groupBy(wishes, (wish) => wish)].map(
    ([wish, { length }]) => `Not possible in this proxy mode: ${wish} (${count(length, 'service port')})\n`,
  );
}

/** The addresses that serve, each once. */
function reachableText({ direct }: ServiceReport): string {
  const addresses = new Set(direct?.places.flatMap(({ address }) => address ?? []));
  return [...addresses].join(',') || '-';
}

function clusterAddressText({ direct, clusterIP, port }: ServiceReport): string {
  return direct ? 'not captured' : joinHostPort(clusterIP, port);
}

/** `127.0.0.1:8080 (for 10.96.0.10:8080/TCP)`, or why a frontend is not served. */
function placeTexts({ direct }: ServiceReport): string[] {
  return (direct?.places ?? []).map(({ frontend, address, note }) =>
    address === null ? `not at all (for ${frontend}): ${note}` : `${address} (for ${frontend})`,
  );
}

function externalText({ externalIPs, loadBalancerIPs }: ServiceReport): string {
  return [...externalIPs, ...loadBalancerIPs].join(',') || '-';
}

/** A number where 0 means none. */
function numberText(n: number): string {
  return n === 0 ? '-' : String(n);
}

/** Everything about each service port, with the reasons. */
export function serviceDetailsText(
  services: readonly ServiceReport[],
  paint: Paint,
  { width }: Layout = unlimited,
): string {
  return services.map((service) => detailsOf(service, paint, width)).join('\n');
}

function detailsOf(service: ServiceReport, paint: Paint, width: number | undefined): string {
  const { internal, external, topology, endpoints } = service;
  const reasoned = (decision: DecisionReport) =>
    `${decisionText(decision, service, paint)}: ${decision.reason}`;
  const fields = fieldsText(
    [
      ['cluster IP', clusterIPText(service)],
      ['reachable at', placeTexts(service).join(', ')],
      ['node port', service.nodePort === 0 ? undefined : String(service.nodePort)],
      ['external IPs', service.externalIPs.join(', ')],
      ['load balancer IPs', service.loadBalancerIPs.join(', ')],
      ['open to', service.loadBalancerSourceRanges.join(', ')],
      [
        'health check port',
        service.healthCheckNodePort === 0 ? undefined : String(service.healthCheckNodePort),
      ],
      ['affinity', affinityText(service.affinitySeconds)],
      ['balance', balanceText(service)],
      ['departed endpoints', departedText(service)],
      ['from inside', reasoned(internal)],
      ['from outside', external ? reasoned(external) : undefined],
      ['does not have', lostTexts(service).join(', ')],
      ['topology', `${topology.mode}: ${topology.reason}`],
      [
        'endpoints',
        `${endpoints.known} known, ${endpoints.cluster} in set Cluster, ${endpoints.local} in set Local`,
      ],
    ],
    width,
  );
  return `${paint('bold', service.service)} (${service.family})\n${fields}`;
}

function clusterIPText({ clusterIP, port, direct }: ServiceReport): string {
  const address = joinHostPort(clusterIP, port);
  return direct ? `${address}, not captured: ${direct.reason}` : address;
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

/** The table of endpoints, with the reason why each takes traffic or does not. */
export function endpointColumns(paint: Paint): readonly Column<EndpointReport>[] {
  return [
    { heading: 'SERVICE PORT', cell: ({ service }) => service, least: 20 },
    { heading: 'FAMILY', cell: ({ family }) => family, isExtra: true },
    { heading: 'ENDPOINT', cell: ({ endpoint }) => endpoint },
    { heading: 'POD', cell: podText, least: 12, leaveOut: 3 },
    { heading: 'NODE', cell: ({ node }) => node ?? '-', isExtra: true },
    { heading: 'ZONE', cell: ({ zone }) => zone ?? '-', leaveOut: 0 },
    { heading: 'STATE', cell: stateText },
    { heading: 'THIS NODE', cell: ({ local }) => (local ? 'yes' : 'no'), leaveOut: 2 },
    { heading: 'HINTS', cell: hintsText, least: 8, leaveOut: 1 },
    { heading: 'USED BY', cell: ({ usedBy }) => usedBy.join(',') || '-', isExtra: true },
    {
      heading: 'WHY',
      cell: ({ usedBy, reason }) => (usedBy.length > 0 ? reason : paint('grey', reason)),
      least: 16,
    },
  ];
}

function stateText({ ready, serving, terminating }: EndpointReport): string {
  if (terminating) return serving ? 'terminating, serving' : 'terminating';
  return ready ? 'ready' : 'not ready';
}

function hintsText({ zoneHints = [], nodeHints = [] }: EndpointReport): string {
  const hints = [...zoneHints.map((zone) => `zone ${zone}`), ...nodeHints.map((node) => `node ${node}`)];
  return hints.join(', ') || '-';
}
