import type { DecisionReport, EndpointReport, ServiceReport } from '../inspect/api.ts';
import { joinHostPort } from '../model/ip.ts';

/** The way of new connections to one service port: frontends, decisions, endpoints. */
export interface Lanes {
  readonly frontends: readonly Frontend[];
  readonly decisions: readonly DecisionNode[];
  /** Those that take traffic first. */
  readonly endpoints: readonly EndpointNode[];
}

/** A destination that clients use. */
export interface Frontend {
  readonly kind: string;
  /** `10.96.0.10:80`, or `:30080`. */
  readonly address: string;
  /** The same as `ip:port/PROTO`, to ask about; '' when no packet can be asked about. */
  readonly destination: string;
  /** Into `decisions`; -1 when another service port owns the address. */
  readonly decision: number;
  readonly note: string;
}

export interface DecisionNode {
  /** Who it is for: `inside`, `outside` or `everybody`. */
  readonly clients: string;
  readonly action: DecisionReport['action'];
  readonly title: string;
  readonly reason: string;
}

export interface EndpointNode {
  readonly report: EndpointReport;
  readonly tone: 'fine' | 'warning' | 'idle';
  /** The share of new connections that each decision gives it, 0 to 1. */
  readonly shares: readonly number[];
}

export function lanesOf(service: ServiceReport, endpoints: readonly EndpointReport[], nodeIP: string): Lanes {
  const decided = decisionsOf(service);
  const nodes = endpoints.map((report) => endpointNode(report, decided));
  const rank = ({ tone }: EndpointNode) => ['fine', 'warning', 'idle'].indexOf(tone);
  nodes.sort((a, b) => rank(a) - rank(b) || (a.report.endpoint < b.report.endpoint ? -1 : 1));
  return {
    frontends: frontendsOf(service, decided, nodeIP),
    decisions: decided.map(({ node }) => node),
    endpoints: nodes,
  };
}

interface Decided {
  readonly node: DecisionNode;
  readonly decision: DecisionReport;
  readonly isInternal: boolean;
  readonly isExternal: boolean;
}

/** One decision when it is the same for all clients. */
function decisionsOf({ internal, external }: ServiceReport): Decided[] {
  if (!external) return [decided(internal, 'everybody', true, false)];
  const isSame = internal.action === external.action && internal.endpoints === external.endpoints;
  if (isSame) return [decided(internal, 'everybody', true, true)];
  return [decided(internal, 'inside', true, false), decided(external, 'outside', false, true)];
}

function decided(
  decision: DecisionReport,
  clients: string,
  isInternal: boolean,
  isExternal: boolean,
): Decided {
  const { action, reason } = decision;
  return { decision, isInternal, isExternal, node: { clients, action, reason, title: titleOf(decision) } };
}

function titleOf({ action, endpoints }: DecisionReport): string {
  if (action === 'drop') return 'Drop: clients get no answer';
  if (action === 'reject') return 'Reject: clients get an error';
  return endpoints === 'local' ? 'To endpoints on this node' : 'To endpoints of the cluster';
}

function frontendsOf(service: ServiceReport, decisions: readonly Decided[], nodeIP: string): Frontend[] {
  const { clusterIP, port, nodePort, externalIPs, loadBalancerIPs, protocol, lost = [], direct } = service;
  const inside = decisions.findIndex(({ isInternal }) => isInternal);
  const outside = decisions.findIndex(({ isExternal }) => isExternal);
  const at = (kind: string, ip: string, decision: number) => {
    const address = joinHostPort(ip, port);
    return { kind, address, name: `${address}/${protocol}`, destination: `${address}/${protocol}`, decision };
  };
  const all = [
    at('cluster IP', clusterIP, inside),
    ...loadBalancerIPs.map((ip) => at('load balancer IP', ip, outside)),
    ...externalIPs.map((ip) => at('external IP', ip, outside)),
    ...(nodePort === 0
      ? []
      : [
          {
            kind: 'node port',
            address: `:${nodePort}`,
            name: `:${nodePort}/${protocol}`,
            destination: `${joinHostPort(nodeIP, nodePort)}/${protocol}`,
            decision: outside,
          },
        ]),
  ];
  return all.map(({ name, ...frontend }) => {
    const owner = lost.find((each) => each.frontend === `${frontend.kind} ${name}`)?.owner;
    const place = direct?.places.find((each) => each.frontend === name);
    const note = owner === undefined ? placeText(place) : `belongs to ${owner}`;
    return { ...frontend, note, decision: owner === undefined ? frontend.decision : -1 };
  });
}

function placeText(place: { address: string | null; note: string } | undefined): string {
  if (!place) return '';
  return place.address === null ? `not reachable: ${place.note}` : `reachable at ${place.address}`;
}

function endpointNode(report: EndpointReport, decisions: readonly Decided[]): EndpointNode {
  const shares = decisions.map(({ decision }) => {
    const set = decision.action === 'forward' ? decision.endpoints : undefined;
    return set === undefined ? 0 : (report.expectedShares?.[set] ?? 0);
  });
  const isUsed = shares.some((share) => share > 0);
  return { report, shares, tone: isUsed ? (report.ready ? 'fine' : 'warning') : 'idle' };
}

/** A band between two columns: where it begins and ends, and how thick it is. */
export interface Band {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly tone: string;
  /** What it leads to or comes from, for a click. */
  readonly frontend?: number;
  readonly endpoint?: number;
}

export interface Geometry {
  readonly height: number;
  readonly frontends: readonly number[];
  readonly decisions: readonly number[];
  readonly endpoints: readonly number[];
  readonly left: readonly Band[];
  readonly right: readonly Band[];
}

export const boxHeight = { frontend: 46, decision: 92, endpoint: 78 } as const;
const gap = 8;
/** The thickness of all bands of a decision together. */
const fullWidth = 44;

/** Places the boxes of each column in the middle of the height, and the bands between them. */
export function geometryOf({ frontends, decisions, endpoints }: Lanes): Geometry {
  const heightOf = (n: number, box: number) => n * (box + gap) - gap;
  const height = Math.max(
    heightOf(frontends.length, boxHeight.frontend),
    heightOf(decisions.length, boxHeight.decision),
    heightOf(endpoints.length, boxHeight.endpoint),
  );
  const placed = (n: number, box: number) => {
    const top = (height - heightOf(n, box)) / 2;
    return Array.from({ length: n }, (_, i) => top + i * (box + gap));
  };
  const tops = {
    frontends: placed(frontends.length, boxHeight.frontend),
    decisions: placed(decisions.length, boxHeight.decision),
    endpoints: placed(endpoints.length, boxHeight.endpoint),
  };
  return {
    height,
    ...tops,
    left: leftBands(frontends, decisions, tops),
    right: rightBands(decisions, endpoints, tops),
  };
}

type Tops = Pick<Geometry, 'frontends' | 'decisions' | 'endpoints'>;

function leftBands(frontends: readonly Frontend[], decisions: readonly DecisionNode[], tops: Tops): Band[] {
  return frontends.flatMap(({ decision }, i) => {
    const node = decisions[decision];
    if (!node) return [];
    const siblings = frontends.filter((each) => each.decision === decision).length;
    const before = frontends.slice(0, i).filter((each) => each.decision === decision).length;
    const width = Math.min(12, fullWidth / siblings);
    const place = before - (siblings - 1) / 2;
    const from = (tops.frontends[i] ?? 0) + boxHeight.frontend / 2;
    const to = (tops.decisions[decision] ?? 0) + boxHeight.decision / 2 + place * width;
    return [{ from, to, width: width - 1, tone: node.action === 'forward' ? 'way' : 'warning', frontend: i }];
  });
}

function rightBands(
  decisions: readonly DecisionNode[],
  endpoints: readonly EndpointNode[],
  tops: Tops,
): Band[] {
  return decisions.flatMap((_, d) => {
    let below = (tops.decisions[d] ?? 0) + (boxHeight.decision - fullWidth) / 2;
    return endpoints.flatMap(({ shares, tone }, e) => {
      const share = shares[d] ?? 0;
      if (share === 0) return [];
      const width = share * fullWidth;
      const from = below + width / 2;
      below += width;
      const middle = (tops.endpoints[e] ?? 0) + boxHeight.endpoint / 2;
      // Bands of two decisions to one endpoint lie beside each other.
      const isShared = shares.filter((each) => each > 0).length > 1;
      const to = middle + (isShared ? (d - 0.5) * Math.min(width, boxHeight.endpoint / 2) : 0);
      return [{ from, to, width: Math.max(1.5, width - 1), tone, endpoint: e }];
    });
  });
}
