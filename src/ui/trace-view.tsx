import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../lib/thrown.ts';
import {
  TRACE_HEADER,
  TRACE_PACKETS,
  TRACE_PATH,
  TRACE_SECONDS,
  type TraceAbility,
} from '../trace/page-protocol.ts';
import type { Outcome, TraceReport } from '../trace/report.ts';
import { gapsIn, type Story, storiesIn, summaryOf } from '../trace/trace-words.ts';
import { answerOf } from './api.ts';
import { Copies } from './copies.tsx';
import { Fact } from './node-summary.tsx';

/** Follows real packets of a service port for ten seconds, where the server of the page can. */
export function TraceView({ service }: { service: string }) {
  const obstacle = useObstacle();
  const { trace, start, cancel } = useTrace(service);
  if (obstacle === undefined) return null;
  const isRunning = trace === 'running';
  return (
    <section class="explain" aria-label={`Real packets of ${service}`}>
      <h4>Real packets</h4>
      {obstacle !== null && <Elsewhere {...{ service, obstacle }} />}
      {obstacle === null && (
        <>
          <p class="packet">
            Only the first packet of a connection is followed, for {TRACE_PACKETS} connections at most.
            Connections that are already open do not show.
          </p>
          <button type="button" onClick={isRunning ? cancel : start}>
            {isRunning ? 'Cancel' : `Follow packets for ${TRACE_SECONDS} s`}
          </button>
          <div role="status">
            {isRunning && <p class="calm">Waiting for new connections to {service}…</p>}
            {typeof trace === 'object' && <Told trace={trace} />}
          </div>
          <Copies command={`trace ${service}`} isInner />
        </>
      )}
    </section>
  );
}

/** Not the call of the other commands: it may ask another node, and trace cannot. */
function Elsewhere({ service, obstacle }: { service: string; obstacle: string }) {
  return (
    <p class="packet">
      They cannot be followed from here: {obstacle}. On the node, or in the pod of kube-proxy, as root:{' '}
      <code>kube-proxyctl trace {service}</code>
    </p>
  );
}

type Trace = 'none' | 'running' | Ended;

/** The answer, or why there is none. */
type Ended = { readonly report: TraceReport } | { readonly error: string };

function Told({ trace }: { trace: Ended }) {
  if ('error' in trace) return <p class="silence">{trace.error}</p>;
  const { report } = trace;
  return (
    <>
      {storiesIn(report).map((story) => (
        <StoryView key={story.first.headline} story={story} />
      ))}
      {[summaryOf(report, 'the most that are followed'), ...gapsIn(report), ...report.notShown].map(
        (text) => (
          <p key={text} class="packet">
            {text}
          </p>
        ),
      )}
    </>
  );
}

const looks: Readonly<Record<Outcome, readonly [look: string, symbol: string]>> = {
  answered: ['fine', '●'],
  delivered: ['warning', '▲'],
  incomplete: ['warning', '▲'],
  refused: ['outage', '✕'],
  unanswered: ['outage', '✕'],
  dropped: ['outage', '✕'],
  rejected: ['outage', '✕'],
  lost: ['outage', '✕'],
};

function StoryView({ story: { first, headline, ways, fields } }: { story: Story }) {
  const [look, symbol] = looks[first.outcome];
  return (
    <article class="story">
      <p class={`headline ${look}`}>
        <span aria-hidden="true">{symbol}</span> {headline}
      </p>
      {ways.length > 0 && (
        <ul>
          {ways.map((way) => (
            <li key={way}>{way}</li>
          ))}
        </ul>
      )}
      <dl class="facts">
        {fields.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
    </article>
  );
}

/** Why packets cannot be followed; null when they can, undefined until that is known. */
function useObstacle(): string | null | undefined {
  const [obstacle, setObstacle] = useState<string | null>();
  useEffect(() => {
    const end = new AbortController();
    askTrace<TraceAbility>(TRACE_PATH, end.signal).then(
      (ability) => setObstacle(ability.obstacle),
      (error) => end.signal.aborted || setObstacle(messageOf(error)),
    );
    return () => end.abort();
  }, []);
  return obstacle;
}

/** A trace that starts at a click. It ends when the view goes away. */
function useTrace(service: string) {
  const [trace, setTrace] = useState<Trace>('none');
  const end = useRef<AbortController>(undefined);
  const cancel = () => {
    end.current?.abort();
    setTrace('none');
  };
  useEffect(() => () => end.current?.abort(), []);
  const start = () => {
    end.current = new AbortController();
    const { signal } = end.current;
    const settle = (ended: Ended) => {
      if (!signal.aborted) setTrace(ended);
    };
    setTrace('running');
    askTrace<TraceReport>(`${TRACE_PATH}?${new URLSearchParams({ name: service })}`, signal).then(
      (report) => settle({ report }),
      (error) => settle({ error: messageOf(error) }),
    );
  };
  return { trace, start, cancel };
}

async function askTrace<T>(address: string, signal: AbortSignal): Promise<T> {
  const response = await answerOf(address, signal, { [TRACE_HEADER]: 'page' });
  return response.json();
}
