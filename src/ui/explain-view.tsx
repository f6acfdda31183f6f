import { useEffect, useState } from 'preact/hooks';
import type { Fate } from '../backends/inspection.ts';
import type { ExplanationReport } from '../inspect/api.ts';
import {
  boundBy,
  chainEffects,
  chainText,
  fateText,
  headline,
  laterPacketsText,
  obstacleText,
  packetText,
  seenText,
} from '../inspect/explanation-words.ts';
import { podText } from '../inspect/pod-text.ts';
import { percentText } from '../lib/quantity-text.ts';
import { messageOf } from '../lib/thrown.ts';
import { ask as askAPI, type Query } from './api.ts';
import { Copies } from './copies.tsx';
import type { Asked } from './route.ts';

interface ExplainProps {
  readonly question: Asked;
  /** The question is asked again when this changes. */
  readonly basis: string;
  readonly ask: (question: Asked) => void;
}

/** What happens to one packet: the decision in words, and what the kernel has. */
export function ExplainView({ question, basis, ask }: ExplainProps) {
  const query = queryOf(question);
  const { report, error, again } = useExplanation(query, basis);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const field =
      event.currentTarget instanceof HTMLFormElement ? event.currentTarget.elements.namedItem('from') : null;
    const from = field instanceof HTMLInputElement ? field.value.trim() : question.from;
    if (from === question.from) again();
    else ask({ ...question, from });
  };
  return (
    <section class="explain" aria-label={`Explanation of a packet to ${question.to}`}>
      <form class="toolbar" onSubmit={submit}>
        <label>
          <span>From</span>
          <input
            name="from"
            key={question.from}
            defaultValue={question.from}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <span class="to">to {question.to}</span>
        <button type="submit">Explain</button>
        <button type="button" onClick={() => ask({ from: '', to: '' })}>
          Close
        </button>
      </form>
      <div role="status">
        {error !== undefined && <p class="silence">{error}</p>}
        {!report && error === undefined && <p class="calm">Asking the kernel…</p>}
        {report && (
          <div class="columns">
            <Decision report={report} />
            <Evidence report={report} />
          </div>
        )}
      </div>
      <Copies command={`explain ${question.from} ${question.to}`} page="explain" query={query} isInner />
    </section>
  );
}

/** The parameters of the API for `ip:port/PROTO`. */
function queryOf({ from, to }: Asked): Query {
  const [, destination = '', port = '', protocol = ''] = /^\[?(.*?)\]?:(\d+)\/(\w+)$/.exec(to) ?? [];
  return { source: from, destination, port, protocol };
}

function Decision({ report }: { report: ExplanationReport }) {
  const { planned, otherRules } = report;
  const fate = boundBy(report) ? (report.kernel?.fate ?? planned.fate) : planned.fate;
  return (
    <div>
      <h4>Decision</h4>
      <p class="headline">{headline(report)}</p>
      {otherRules?.obstacles.map((obstacle) => {
        const isCertain = obstacle.certainty === 'certain';
        const words = isCertain ? 'Another program stops it' : 'Another program may stop it';
        return (
          <p key={`${obstacle.table} ${obstacle.chain}`} class={isCertain ? 'outage' : 'warning'}>
            <span aria-hidden="true">{isCertain ? '✕' : '▲'}</span> {words}: {obstacleText(obstacle)}
          </p>
        );
      })}
      <p class="packet">{packetText(report)}</p>
      <ol>
        {planned.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ol>
      <Targets {...{ fate, report }} />
    </div>
  );
}

const maxTargets = 12;

function Targets({ fate, report }: { fate: Fate; report: ExplanationReport }) {
  if (fate.action !== 'forward') return null;
  const { planned, placements = {} } = report;
  const podOf = (endpoint: string) => podText({ service: planned.service ?? '', ...placements[endpoint] });
  const more = fate.targets.length - maxTargets;
  return (
    <table class="targets">
      <thead>
        <tr>
          <th scope="col">Endpoint</th>
          <th scope="col" class="number">
            Chance
          </th>
          <th scope="col">Sees as source</th>
        </tr>
      </thead>
      <tbody>
        {fate.targets.slice(0, maxTargets).map((target) => (
          <tr key={target.endpoint}>
            <td>
              {target.endpoint}
              {placements[target.endpoint]?.pod !== undefined && <small>{podOf(target.endpoint)}</small>}
            </td>
            <td class="number">{percentText(target.probability)}</td>
            <td>{seenText(target)}</td>
          </tr>
        ))}
        {more > 0 && (
          <tr>
            <td colSpan={3}>and {more.toLocaleString('en')} more</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function Evidence({ report }: { report: ExplanationReport }) {
  const { kernel, kernelUnknown, differences } = report;
  return (
    <div>
      <h4>Kernel</h4>
      {!kernel && (
        <p class="warning">
          <span aria-hidden="true">▲</span> The answer of the kernel is unknown:{' '}
          {kernelUnknown ?? 'no reason is given'}
        </p>
      )}
      {kernel && differences.length === 0 && (
        <p class="fine">
          <span aria-hidden="true">●</span> The kernel agrees.
        </p>
      )}
      {differences.length > 0 && (
        <div class="outage">
          <p>
            <span aria-hidden="true">✕</span> The kernel disagrees
          </p>
          <ul>
            {differences.map((difference) => (
              <li key={difference}>{difference}</li>
            ))}
          </ul>
          {kernel && <p>The kernel says: {fateText(kernel.fate)}</p>}
        </div>
      )}
      {laterPacketsText(report) && <p>{laterPacketsText(report)}</p>}
      {kernel && (
        <>
          {kernel.evidence.length > 0 && <pre>{kernel.evidence.join('\n')}</pre>}
          <p class="packet">Looked at: {kernel.lookedAt}.</p>
        </>
      )}
      <OtherChains report={report} />
    </div>
  );
}

function OtherChains({ report: { otherRules, otherRulesUnknown, kernel } }: { report: ExplanationReport }) {
  if (!kernel || kernel.fate.action === 'drop' || kernel.fate.action === 'reject') return null;
  if (!otherRules)
    return <p class="warning">Rules of other programs were not looked at: {otherRulesUnknown}</p>;
  const { lookedAt, obstacles, notLookedAt } = otherRules;
  return (
    <>
      <p class="packet">
        {lookedAt.length === 0
          ? 'No other nf_tables chain is on the way.'
          : 'Other nf_tables chains on the way:'}
      </p>
      <ul class="chains">
        {lookedAt.map((one) => {
          const obstacle = obstacles.find(({ table, chain }) => table === one.table && chain === one.chain);
          return (
            <li key={chainText(one)}>
              {chainText(one)}: {chainEffects[obstacle?.certainty ?? 'none']}
            </li>
          );
        })}
        {notLookedAt.map((what) => (
          <li key={what}>not looked at: {what}</li>
        ))}
      </ul>
    </>
  );
}

/** Asks when the question or `basis` changes; the last answer is shown until the next one is there. */
function useExplanation(query: Query, basis: string) {
  const key = JSON.stringify(query);
  const [round, setRound] = useState(0);
  const [report, setReport] = useState<ExplanationReport>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    const end = new AbortController();
    const settle = (news: ExplanationReport | undefined, reason: string | undefined) => {
      if (end.signal.aborted) return;
      setReport(news);
      setError(reason);
    };
    askAPI<ExplanationReport>('explain', query, end.signal).then(
      (news) => settle(news, undefined),
      (reason) => settle(undefined, messageOf(reason)),
    );
    return () => end.abort();
  }, [key, basis, round]);
  return { report, error, again: () => setRound((n) => n + 1) };
}
