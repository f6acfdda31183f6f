import { heading, type Size, sizeText, type Table, valueText } from './measurement.ts';

const panelWidth = 330;
const panelHeight = 230;
const panelsPerRow = 3;
const margin = { left: 56, right: 40, top: 34, bottom: 40 };
const legendHeight = 30;
/** Distinguishable for people with colour blindness, on white and on black. */
const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00'];

interface Point {
  readonly size: Size;
  readonly value: number;
}

interface Line {
  readonly program: string;
  readonly points: readonly Point[];
}

interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
}

/**
 * Cost against size, a panel for every metric and a line for every program, both axes logarithmic. Undefined when no
 * metric was measured at two sizes or more: a line needs two ends.
 */
export function plot(table: Table): string | undefined {
  const panels = table.columns.flatMap((column, i) => panelOf(heading(column), table, i));
  if (panels.length === 0) return undefined;
  const programs = [...new Set(panels.flatMap(({ lines }) => lines.map(({ program }) => program)))];
  const columns = Math.min(panelsPerRow, panels.length);
  const width = columns * panelWidth;
  const height = Math.ceil(panels.length / columns) * panelHeight + legendHeight + 24;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(`${table.part}: ${table.topic}`)}</title>`,
    style,
    `<rect class="back" width="${width}" height="${height}"/>`,
    text(margin.left, 18, `${table.part}: ${table.topic}`, 'title'),
    legend(programs),
    ...panels.map((panel, i) => {
      const [x, y] = [(i % columns) * panelWidth, Math.floor(i / columns) * panelHeight + legendHeight + 24];
      return `<g transform="translate(${x} ${y})">\n${drawPanel(panel, programs)}\n</g>`;
    }),
    '</svg>',
    '',
  ].join('\n');
}

/** Leaves out zero and negative figures, which a logarithmic axis cannot show. */
function panelOf(title: string, table: Table, column: number): Panel[] {
  const points = table.rows.flatMap(({ program, size, values }) => {
    const value = values[column];
    return size && value !== undefined && value > 0 ? [{ program, size, value }] : [];
  });
  const lines = [...Map.groupBy(points, ({ program }) => program)].map(([program, all]) => ({
    program,
    points: all.toSorted((a, b) => extent(a.size) - extent(b.size)),
  }));
  return lines.some((line) => line.points.length > 1) ? [{ title, lines }] : [];
}

function drawPanel({ title, lines }: Panel, programs: readonly string[]): string {
  const points = lines.flatMap((line) => line.points);
  const x = logScale(
    points.map(({ size }) => extent(size)),
    margin.left,
    panelWidth - margin.right,
  );
  const decades = decadesAround(points.map(({ value }) => value));
  const y = logScale(decades, panelHeight - margin.bottom, margin.top);
  const sizes = Map.groupBy(points, ({ size }) => extent(size));
  return [
    text(margin.left, margin.top - 12, title, 'name'),
    ...decades.map((value) => {
      const at = round(y(value));
      return (
        `<line class="grid" x1="${margin.left}" x2="${panelWidth - margin.right}" y1="${at}" y2="${at}"/>` +
        text(margin.left - 6, at + 4, valueText(value), 'tick end')
      );
    }),
    ...[...sizes].map(([total, same], i) =>
      // Neighbouring labels are close: every other label goes one line lower.
      text(round(x(total)), panelHeight - margin.bottom + 16 + (i % 2) * 13, sizesText(same), 'tick middle'),
    ),
    ...lines.map((line) => drawLine(line, colourOf(programs.indexOf(line.program)), x, y)),
  ].join('\n');
}

function drawLine({ program, points }: Line, colour: string, x: Scale, y: Scale): string {
  const at = points.map(({ size, value }) => [round(x(extent(size))), round(y(value))] as const);
  const path = at.map(([left, top]) => `${left},${top}`).join(' ');
  const dots = points.map(({ size, value }, i) => {
    const [left, top] = at[i] ?? [0, 0];
    const hint = escapeXml(`${program}, ${sizeText(size)}: ${valueText(value)}`);
    return `<circle cx="${left}" cy="${top}" r="3.5" fill="${colour}"><title>${hint}</title></circle>`;
  });
  return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}`;
}

/** The label of all sizes with the same number of endpoints: they share a place on the axis. */
function sizesText(points: readonly Point[]): string {
  return [...new Set(points.map(({ size }) => sizeText(size)))].join(', ');
}

function legend(programs: readonly string[]): string {
  let x = margin.left;
  return programs
    .map((program, i) => {
      const at = x;
      x += 34 + program.length * 7.2;
      return `<rect x="${round(at)}" y="30" width="12" height="12" fill="${colourOf(i)}"/>${text(round(at) + 17, 40, program, 'tick')}`;
    })
    .join('\n');
}

/** The number of endpoints of all services together. */
function extent({ services, endpoints }: Size): number {
  return services * endpoints;
}

type Scale = (value: number) => number;

function logScale(values: readonly number[], from: number, to: number): Scale {
  const [low, high] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))];
  const span = high - low;
  // A single size is in the middle.
  return (value) => from + (span === 0 ? 0.5 : (Math.log10(value) - low) / span) * (to - from);
}

/** The powers of ten around the values, at least two. */
function decadesAround(values: readonly number[]): number[] {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(...values))), low + 1);
  return Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
}

function colourOf(index: number): string {
  return colours[index % colours.length] ?? 'currentColor';
}

function text(x: number, y: number, content: string, classes: string): string {
  return `<text x="${x}" y="${y}" class="${classes}">${escapeXml(content)}</text>`;
}

function escapeXml(content: string): string {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const style = `<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 14px; }
  .name { font-weight: 600; }
  .tick { font-size: 11px; fill: #57606a; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
  .grid { stroke: #d0d7de; }
  .back { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .tick { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .back { fill: #0d1117; }
  }
</style>`;
