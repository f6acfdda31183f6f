import { useEffect, useState } from 'preact/hooks';
import type { StatusReport } from '../inspect/api.ts';
import { spanText } from '../lib/quantity-text.ts';
import type { Live } from './live.ts';
import { hashOf, type Route, servicesHash } from './route.ts';

const symbols = { healthy: '●', starting: '◌', degraded: '▲', unhealthy: '✕' } as const;
const timelineHash = hashOf({ view: 'timeline', filter: { event: '' } });

/** The node, the verdict, and the ways to the views; and whether the proxy answers. */
export function Banner({ live, route }: { live: Live; route: Route }) {
  const { status } = live;
  return (
    <header class="banner">
      <div class="bar">
        <h1>
          <a href={servicesHash()}>{status?.nodeName ?? 'kube-proxy'}</a>
        </h1>
        {status && <Verdict status={status} />}
        {status && <About status={status} />}
        <nav aria-label="Views">
          <a href={servicesHash()} aria-current={route.view === 'services' ? 'page' : undefined}>
            Services
          </a>
          <a href={timelineHash} aria-current={route.view === 'timeline' ? 'page' : undefined}>
            Timeline
          </a>
        </nav>
      </div>
      <div role="status">{live.failure !== undefined && <Silence live={live} />}</div>
    </header>
  );
}

function Verdict({ status: { state } }: { status: StatusReport }) {
  return (
    <span class={`verdict ${state}`}>
      <span aria-hidden="true">{symbols[state]}</span> {state === 'unhealthy' ? 'UNHEALTHY' : state}
    </span>
  );
}

function About({ status }: { status: StatusReport }) {
  const { mode, version, product, time, startTime } = status;
  const up = spanText(Date.parse(time) - Date.parse(startTime));
  const commit = product && product.commit !== 'unknown' ? ` (${product.commit.slice(0, 8)})` : '';
  const program = product ? `kube-proxy-ts ${product.version}${commit}, ` : '';
  return (
    <span class="about">
      {mode} mode · {program}as {version} · up {up}
    </span>
  );
}

/** Says plainly that what is shown is old, and since when. */
function Silence({ live: { failure, answeredAt } }: { live: Live }) {
  const now = useNow(1_000);
  const last =
    answeredAt === undefined
      ? 'There was no answer yet.'
      : `The last answer was at ${new Date(answeredAt).toTimeString().slice(0, 8)}, ${spanText(now - answeredAt)} ago; this page shows what was known then.`;
  return (
    <p class="silence">
      <strong>No answer from kube-proxy:</strong> {failure}. {last} Trying again every two seconds.
    </p>
  );
}

/** The time, which changes every so often. */
function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
