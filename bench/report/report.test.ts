import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Measurement, measurements, type Size, type Table, tabulate, valueText } from './measurement.ts';
import { type Report, writeReport } from './report.ts';
import { plot } from './svg.ts';
import { markdownTable, textTable } from './text.ts';

const small: Size = { services: 1_000, endpoints: 3 };
const large: Size = { services: 10_000, endpoints: 10 };

function cold(program: string, size: Size, seconds: number): Measurement[] {
  return measurements({ part: 'nftables', topic: 'whole programs', program, size }, { cold: [seconds, 's'] });
}

const figures: readonly Measurement[] = [
  ...cold('kube-proxy-ts', small, 0.49),
  ...measurements(
    { part: 'nftables', topic: 'whole programs', program: 'kube-proxy-ts', size: small },
    { peak: [99.4, 'MB'] },
  ),
  ...cold('nft <f>', small, 0.15),
  ...cold('kube-proxy-ts', large, 1.55),
  ...cold('nft <f>', large, 11.77),
  ...measurements(
    { part: 'startup', topic: 'from start to health', program: 'kube-proxy-ts' },
    { 'to healthz': [279, 'ms'] },
  ),
];

function onlyTable(all: readonly Measurement[]): Table {
  const [table, ...others] = tabulate(all);
  assert.ok(table && others.length === 0);
  return table;
}

const programs = onlyTable(figures.filter(({ part }) => part === 'nftables'));

describe('benchmark tables', () => {
  test('have a row for every size and program, and an empty cell where a program has no figure', () => {
    assert.deepEqual(
      programs.rows.map(({ program, values }) => [program, ...values]),
      [
        ['kube-proxy-ts', 0.49, 99.4],
        ['nft <f>', 0.15, undefined],
        ['kube-proxy-ts', 1.55, undefined],
        ['nft <f>', 11.77, undefined],
      ],
    );
  });

  test('have separate columns for figures of the same name with different units', () => {
    const subject = { part: 'p', topic: 't', program: 'x' };
    const table = onlyTable([
      ...measurements(subject, { cost: [1, 's'] }),
      ...measurements(subject, { cost: [2, 'MB'] }),
    ]);
    assert.deepEqual(table.rows[0]?.values, [1, 2]);
  });

  test('have aligned columns in text', () => {
    assert.equal(
      textTable(programs),
      `nftables: whole programs
services × endpoints  program        cold (s)  peak (MB)
1,000 × 3             kube-proxy-ts      0.49       99.4
1,000 × 3             nft <f>            0.15
10,000 × 10           kube-proxy-ts      1.55
10,000 × 10           nft <f>            11.8`,
    );
  });

  test('in Markdown have no size column when no figure has a size, and escape what would end a cell', () => {
    const table = onlyTable(
      measurements({ part: 'p', topic: 't', program: 'a|b' }, { rate: [12_345.6, ''] }),
    );
    assert.equal(markdownTable(table), '### p: t\n\n| program | rate |\n| --- | ---: |\n| a\\|b | 12346 |');
  });

  test('show figures with three significant digits', () => {
    const texts = [0.123, 1.234, 12.34, 123.4, 7, Number.NaN, undefined].map(valueText);
    assert.deepEqual(texts, ['0.12', '1.23', '12.3', '123', '7', '', '']);
  });
});

describe('benchmark plots', () => {
  const svg = plot(programs) ?? '';

  test('have a line for each program, and no panel for a metric with figures of one size only', () => {
    assert.equal(svg.match(/<polyline/g)?.length, 2);
    assert.ok(svg.includes('>cold (s)<'));
    assert.ok(!svg.includes('peak'));
  });

  test('are logarithmic: the same factor is the same distance', () => {
    const sizes = [10, 100, 1_000].map((services) => ({ services, endpoints: 1 }));
    const table = onlyTable(sizes.flatMap((size) => cold('x', size, size.services / 10)));
    const points = /points="([^"]+)"/.exec(plot(table) ?? '')?.[1]?.split(' ') ?? [];
    const [a, b, c] = points.map((point) => point.split(',').map(Number));
    assert.ok(a && b && c);
    for (const axis of [0, 1]) {
      const [first, second] = [(b[axis] ?? 0) - (a[axis] ?? 0), (c[axis] ?? 0) - (b[axis] ?? 0)];
      assert.ok(Math.abs(first - second) <= 0.2 && first !== 0, `${first} and ${second}`);
    }
  });

  test('escape names, and leave out figures that have no logarithm', () => {
    assert.ok(svg.includes('nft &lt;f&gt;') && !svg.includes('<f>'));
    const table = onlyTable([...cold('x', small, 0), ...cold('x', large, 1), ...cold('x', small, -1)]);
    assert.equal(plot(table), undefined);
    assert.ok(!svg.includes('NaN') && !svg.includes('Infinity'));
  });
});

test('a report has JSON that holds every figure, and Markdown that names plots and failures', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  try {
    const report: Report = {
      started: new Date('2026-11-15T10:20:30Z'),
      machine: { cores: 2, memoryGB: 24, kernel: '6.18.44', node: '24.21.0', load: 0.5 },
      peer: 'Kubernetes v1.37.0',
      parts: [
        { part: 'ipvs', seconds: 0, notes: ['left out: this kernel has no ip_vs'] },
        { part: 'iptables', seconds: 3, notes: [], error: 'the program ended' },
      ],
      measurements: figures,
    };
    writeReport(report, directory);
    const base = '2026-11-15T102030';
    const plotted = `${base}-nftables-whole-programs.svg`;
    assert.deepEqual(readdirSync(directory).sort(), [plotted, `${base}.json`, `${base}.md`].sort());
    const json = JSON.parse(readFileSync(join(directory, `${base}.json`), 'utf8'));
    assert.deepEqual(json, JSON.parse(JSON.stringify(report)));
    const markdown = readFileSync(join(directory, `${base}.md`), 'utf8');
    for (const part of [
      `(${plotted})`,
      '- iptables **failed**: the program ended',
      '- ipvs: left out: this kernel has no ip_vs',
      'The peer is Kubernetes v1.37.0.',
    ]) {
      assert.ok(markdown.includes(part), part);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
