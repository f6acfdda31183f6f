import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { JournalItem, JournalReport } from '../inspect/api.ts';

const height = 180;
const hourSeconds = 3_600;
const leastSeconds = 300;
/** Events that get a line of their own colour across the plot. */
const marks: Partial<Record<JournalItem['event'], string>> = {
  Start: '--way',
  Repair: '--warning',
  SyncFailed: '--outage',
  Problem: '--outage',
  WatchLost: '--warning',
};

/** How long syncs took and changes waited, and when repairs, failures and restarts were. */
export function JournalPlot({ report }: { report: JournalReport }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(report);
  latest.current = report;
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(element, latest), dataOf(latest.current), element);
    };
    make();
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', make);
    return () => {
      observer.disconnect();
      scheme.removeEventListener('change', make);
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(report)), [report]);
  return (
    <figure class="plot">
      <figcaption>
        <span class="key took">■</span> sync took <span class="key latency">◆</span> change in the API until
        it took effect <span class="key warning">│</span> repair, watch lost <span class="key outage">│</span>{' '}
        failure <span class="key way">│</span> start
      </figcaption>
      <div ref={place} />
    </figure>
  );
}

/** Times, durations of syncs and latencies in milliseconds. */
function dataOf({ items }: JournalReport): uPlot.AlignedData {
  const syncs = items.filter(({ sync }) => sync !== undefined);
  const ms = (seconds: number | null | undefined) =>
    seconds == null ? null : Math.max(0.01, seconds * 1000);
  return [
    syncs.map(({ time }) => Date.parse(time) / 1000),
    syncs.map(({ sync }) => ms(sync?.seconds)),
    syncs.map(({ sync }) => ms(sync?.latencySeconds)),
  ];
}

function optionsOf(element: HTMLElement, latest: { readonly current: JournalReport }): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  const points = (name: string, size: number) => ({
    stroke: colour(name),
    fill: colour(name),
    paths: () => null,
    points: { show: true, size, stroke: colour(name), fill: colour(name) },
  });
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: () => shownTime(latest.current) },
      y: { distr: 3, range: (_plot, least, most) => [Math.min(least ?? 1, 1), Math.max(most ?? 10, 10) * 2] },
    },
    axes: [
      { ...axis, values: (_plot, splits) => clockTexts(splits) },
      {
        ...axis,
        size: 60,
        filter: powers,
        grid: { ...axis.grid, filter: powers },
        values: (_plot, splits) => splits.map((ms) => (ms === null ? '' : durationText(ms))),
      },
    ],
    series: [{}, points('--fine', 5), points('--link', 6)],
    hooks: { drawAxes: [(plot) => drawMarks(plot, latest.current, colour)] },
  };
}

/** The hour until now, or what the journal has of it. */
function shownTime({ time, since }: JournalReport): [number, number] {
  const end = Date.parse(time) / 1000;
  const span = Math.min(hourSeconds, Math.max(leastSeconds, end - Date.parse(since) / 1000));
  return [end - span, end + span / 100];
}

/** With seconds where the steps are shorter than a minute. */
function clockTexts(splits: readonly number[]): string[] {
  const length = (splits[1] ?? 60) - (splits[0] ?? 0) < 60 ? 8 : 5;
  return splits.map((seconds) => new Date(seconds * 1000).toTimeString().slice(0, length));
}

/** Keeps 1, 10, 100 and so on of the steps of a logarithmic scale. */
function powers(_plot: uPlot, splits: number[]): (number | null)[] {
  return splits.map((ms) => (Number.isInteger(Math.log10(ms)) ? ms : null));
}

function durationText(ms: number): string {
  return ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`;
}

function drawMarks(plot: uPlot, { items }: JournalReport, colour: (name: string) => string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = devicePixelRatio * 1.5;
  for (const { event, time } of items) {
    const name = marks[event];
    if (name === undefined) continue;
    const x = plot.valToPos(Date.parse(time) / 1000, 'x', true);
    ctx.strokeStyle = colour(name);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
