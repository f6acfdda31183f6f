import { useEffect, useRef, useState } from 'preact/hooks';
import type { EndpointReport } from '../inspect/api.ts';
import { podText } from '../inspect/pod-text.ts';
import type { TrafficItem } from '../inspect/traffic-api.ts';
import { percentText } from '../lib/quantity-text.ts';
import type { Family } from '../model/ip.ts';
import {
  type Band,
  type EndpointNode,
  type Frontend,
  type Geometry,
  geometryOf,
  type Lanes,
} from './lanes.ts';
import { figuresText, openedToEndpoints } from './rates.ts';
import type { Asked } from './route.ts';

/** More endpoints than this are not drawn until somebody asks for them. */
const maxEndpoints = 24;
/** Narrower than this, boxes stand below each other, without bands. */
const leastWidth = 720;
/** Clients elsewhere in questions that nobody asked otherwise: ranges for documentation. */
const elsewhere: Readonly<Record<Family, string>> = { IPv4: '203.0.113.10', IPv6: '2001:db8::10' };

interface LanesProps {
  readonly lanes: Lanes;
  readonly family: Family;
  /** By endpoint; undefined when the proxy has no figures. */
  readonly traffic: readonly TrafficItem[] | undefined;
  readonly question: Asked;
  readonly ask: (question: Asked) => void;
}

/** Frontends, decisions and endpoints in three columns, with bands as thick as the share of new connections. */
export function LanesView({ lanes: all, family, traffic, question, ask }: LanesProps) {
  const [isComplete, setComplete] = useState(false);
  const hidden = isComplete ? 0 : Math.max(0, all.endpoints.length - maxEndpoints);
  const lanes = { ...all, endpoints: all.endpoints.slice(0, all.endpoints.length - hidden) };
  const [ref, width] = useWidth();
  const isWide = width >= leastWidth;
  const geometry = geometryOf(lanes);
  const askAbout = (frontend: Frontend | undefined) => {
    if (!frontend) return;
    const clients = lanes.decisions[frontend.decision]?.clients;
    const isOutside = clients === 'outside' || frontend.kind !== 'cluster IP';
    ask({ from: isOutside ? elsewhere[family] : 'node', to: frontend.destination });
  };
  const askAboutEndpoint = (e: number) => {
    const decision = lanes.endpoints[e]?.shares.findIndex((share) => share > 0);
    askAbout(lanes.frontends.find((frontend) => frontend.decision === decision));
  };
  const opened = openedToEndpoints(traffic ?? []);
  const figuresOf = (endpoint: string) => traffic?.find((item) => item.endpoint === endpoint);
  const at = (column: 'frontends' | 'decisions' | 'endpoints', i: number) =>
    isWide ? { top: `${geometry[column][i] ?? 0}px` } : {};
  return (
    <>
      <div
        ref={ref}
        class={`lanes ${isWide ? 'wide' : 'narrow'}`}
        style={isWide ? { height: `${geometry.height}px` } : { height: 'auto' }}
      >
        {isWide && (
          <Bands
            {...{ geometry, width }}
            onFrontend={(i) => askAbout(lanes.frontends[i])}
            onEndpoint={askAboutEndpoint}
          />
        )}
        <ul class="frontends" aria-label="Frontends">
          {lanes.frontends.map((frontend, i) => (
            <li key={frontend.destination} style={at('frontends', i)}>
              <button
                type="button"
                class={`box ${frontend.decision < 0 ? 'lost' : ''}`}
                aria-pressed={frontend.destination === question.to}
                onClick={() => askAbout(frontend)}
                title="Explain a packet to this address"
              >
                <strong>{frontend.address}</strong>
                <small>
                  {frontend.kind}
                  {frontend.note === '' ? '' : `, ${frontend.note}`}
                </small>
              </button>
            </li>
          ))}
        </ul>
        <ul class="decisions" aria-label="Decisions">
          {lanes.decisions.map(({ clients, action, title, reason }, i) => (
            <li
              key={clients}
              style={at('decisions', i)}
              class={`box ${action === 'forward' ? 'way' : 'warning'}`}
              title={reason}
            >
              <small>{clients === 'everybody' ? 'for every client' : `for clients ${clients}`}</small>
              <strong>
                {action !== 'forward' && <span aria-hidden="true">▲ </span>}
                {title}
              </strong>
              <small class="reason">{reason}</small>
            </li>
          ))}
        </ul>
        <ul class="endpoints" aria-label="Endpoints">
          {lanes.endpoints.map((node, i) => (
            <Endpoint
              key={node.report.endpoint}
              {...{ node, opened }}
              top={at('endpoints', i)}
              figures={figuresOf(node.report.endpoint)}
              onAsk={() => askAboutEndpoint(i)}
            />
          ))}
          {lanes.endpoints.length === 0 && <li class="box idle">no endpoints</li>}
        </ul>
      </div>
      {hidden > 0 && (
        <button type="button" class="more" onClick={() => setComplete(true)}>
          Show {hidden.toLocaleString('en')} more endpoints
        </button>
      )}
    </>
  );
}

interface EndpointProps {
  readonly node: EndpointNode;
  readonly top: { readonly top?: string };
  readonly figures: TrafficItem | undefined;
  /** By all endpoints together. */
  readonly opened: number;
  readonly onAsk: () => void;
}

function Endpoint({ node, top, figures, opened, onAsk }: EndpointProps) {
  const { report, tone, shares } = node;
  const isUsed = tone !== 'idle';
  const shown = shares.filter((share) => share > 0).map(percentText);
  const hints = hintsText(report);
  const place = placeText(report);
  const content = (
    <>
      <span class="line">
        <strong>{report.endpoint}</strong>
        <span class="share">{isUsed ? [...new Set(shown)].join(' / ') : 'unused'}</span>
      </span>
      {place !== '' && <small>{place}</small>}
      <small>
        <span class={`dot ${tone}`} aria-hidden="true">
          {isUsed ? '●' : '○'}
        </span>{' '}
        {stateText(report)}
        {report.local ? ', this node' : ''}
        {hints === '' ? '' : `, hints ${hints}`}
        {figures && (isUsed || figures.open > 0) ? `; ${figuresText(figures, opened)}` : ''}
      </small>
      <small>{report.reason}</small>
      {isUsed && <span class="bar" style={{ width: `${Math.max(...shares) * 100}%` }} />}
    </>
  );
  return (
    <li style={top}>
      {isUsed ? (
        <button type="button" class={`box ${tone}`} onClick={onAsk} title={report.reason}>
          {content}
        </button>
      ) : (
        <div class="box idle" title={report.reason}>
          {content}
        </div>
      )}
    </li>
  );
}

function stateText({ ready, serving, terminating }: EndpointReport): string {
  if (terminating) return serving ? 'terminating, serving' : 'terminating';
  return ready ? 'ready' : 'not ready';
}

/** `web-7d4b9c5f6d-x2x9k in zone eu-1a`, as far as it is known. */
function placeText(report: EndpointReport): string {
  const pod = report.pod === undefined ? '' : podText(report);
  const zone = report.zone === undefined ? '' : `in zone ${report.zone}`;
  return `${pod} ${zone}`.trim();
}

function hintsText({ zoneHints = [], nodeHints = [] }: EndpointReport): string {
  return [...zoneHints.map((zone) => `zone ${zone}`), ...nodeHints.map((node) => `node ${node}`)].join(', ');
}

interface BandsProps {
  readonly geometry: Geometry;
  readonly width: number;
  readonly onFrontend: (i: number) => void;
  readonly onEndpoint: (i: number) => void;
}

/** The columns begin and end at these parts of the width, as in the style sheet. */
const columns = { frontends: 0.24, decisions: [0.34, 0.6], endpoints: 0.7 } as const;

/** A picture of what the boxes say: they are buttons, the bands can only be clicked. */
function Bands({ geometry, width, onFrontend, onEndpoint }: BandsProps) {
  const { height, left, right } = geometry;
  const [decisionLeft, decisionRight] = columns.decisions;
  const curve = (x1: number, x2: number, { from, to, width: stroke, tone, frontend, endpoint }: Band) => {
    const middle = (x1 + x2) / 2;
    const open = () => (frontend === undefined ? onEndpoint(endpoint ?? 0) : onFrontend(frontend));
    return (
      // biome-ignore lint/a11y/noStaticElementInteractions: the boxes are the buttons; this is for the mouse.
      <path
        key={`${frontend} ${endpoint} ${from}`}
        class={tone}
        d={`M${x1} ${from} C${middle} ${from} ${middle} ${to} ${x2} ${to}`}
        stroke-width={stroke}
        onClick={open}
      />
    );
  };
  return (
    <svg width={width} height={height} aria-hidden="true">
      {left.map((band) => curve(columns.frontends * width, decisionLeft * width, band))}
      {right.map((band) => curve(decisionRight * width, columns.endpoints * width, band))}
    </svg>
  );
}

function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!ref.current) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}
