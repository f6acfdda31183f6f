/** Checks that rules and dashboard use only metrics and labels that exist. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import type { DaemonSet } from './daemon-set.ts';
import { metricCatalogue } from './metric-catalogue.ts';
import { queryProblems } from './promql.ts';

const directory = resolve(import.meta.dirname, '../../deploy/monitoring');
const catalogue = await metricCatalogue();

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly refId: string;
  }[];
}

/** Labels that a text contains: `{{ $labels.instance }}`, `{{instance}}`. */
function labelsIn(text: string): string[] {
  return [...text.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label]) => label ?? '');
}

/** Labels that the result of a query can have. */
function labelsOf(query: string): Set<string> {
  const grouped = /\bby\s*\(([^)]*)\)/.exec(query)?.[1];
  if (grouped !== undefined) return new Set(grouped.split(',').map((label) => label.trim()));
  const metric = [...query.matchAll(/[a-z_]\w*/g)].map(([word]) => word).find((word) => catalogue.has(word));
  return new Set(catalogue.get(metric ?? ''));
}

describe('Prometheus rules', () => {
  const { groups } = parse(readFileSync(join(directory, 'prometheus-rules.yaml'), 'utf8')) as {
    groups: { name: string; rules: Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  for (const { alert, expr, for: duration, labels, annotations } of rules) {
    test(`${alert} queries metrics and labels that exist`, () => {
      assert.deepEqual(queryProblems(expr, catalogue), []);
      assert.match(expr, / (>|==) [\d.]+$/);
      assert.match(duration, /^\d+m$/);
      assert.ok(['critical', 'warning'].includes(labels.severity));
      const used = labelsIn(annotations.summary + annotations.description);
      const available = labelsOf(expr);
      assert.deepEqual(
        used.filter((label) => !available.has(label)),
        [],
      );
    });
  }

  test('the PrometheusRule has the same rules', () => {
    const object = parse(readFileSync(join(directory, 'prometheus-rule.yaml'), 'utf8')) as {
      kind: string;
      spec: { groups: unknown };
    };
    assert.equal(object.kind, 'PrometheusRule');
    assert.deepEqual(object.spec.groups, groups);
  });

  test('every alert has a name of its own', () => {
    assert.ok(rules.length >= 7);
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  });
});

test('the PodMonitor selects the pods of the DaemonSet and makes the job that the rules query', () => {
  const { spec } = parse(readFileSync(join(directory, 'pod-monitor.yaml'), 'utf8')) as {
    spec: {
      jobLabel: string;
      selector: { matchLabels: Record<string, string> };
      podMetricsEndpoints: { port: string }[];
    };
  };
  const daemonSet = join(directory, '../kustomize/base/daemon-set.yaml');
  const { template } = (parse(readFileSync(daemonSet, 'utf8')) as DaemonSet).spec;
  assert.deepEqual(spec.selector.matchLabels, template.metadata.labels);
  assert.equal(template.metadata.labels[spec.jobLabel], 'kube-proxy');
  const ports = template.spec.containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name));
  for (const { port } of spec.podMetricsEndpoints) assert.ok(ports.includes(port), port);
});

describe('Grafana dashboard', () => {
  const { panels, templating } = JSON.parse(
    readFileSync(join(directory, 'grafana-dashboard.json'), 'utf8'),
  ) as {
    panels: Panel[];
    templating: { list: { name: string; type: string; query: string }[] };
  };

  for (const { title, targets } of panels) {
    test(`${title} queries metrics and labels that exist`, () => {
      assert.ok(targets.length > 0);
      for (const { expr, legendFormat } of targets) {
        assert.deepEqual(queryProblems(expr, catalogue), []);
        const available = labelsOf(expr);
        assert.deepEqual(
          labelsIn(legendFormat).filter((label) => !available.has(label)),
          [],
        );
      }
    });
  }

  test('variables are declared and use metrics that exist', () => {
    const names = templating.list.map(({ name }) => name);
    const used = JSON.stringify(panels).matchAll(/\$\{?(\w+)/g);
    const builtIn = ['__rate_interval'];
    for (const [, name = ''] of used) assert.ok([...names, ...builtIn].includes(name), name);
    for (const { type, query } of templating.list) {
      if (type === 'query') assert.deepEqual(queryProblems(query, catalogue), []);
    }
  });

  test('panels have numbers of their own and do not overlap', () => {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      assert.ok(x + w <= 24);
      return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
    });
    assert.equal(new Set(cells).size, cells.length);
  });
});

test('a query for a metric or label that does not exist is reported', () => {
  const problems = (query: string) => queryProblems(query, catalogue);
  assert.deepEqual(problems('rate(kubeproxy_made_up_total[5m])'), [
    'there is no metric kubeproxy_made_up_total',
  ]);
  assert.deepEqual(problems('up{node="a"}'), ['up has no label node']);
  assert.deepEqual(problems('sum by (table) (up)'), ['up has no label table']);
  assert.deepEqual(problems('median(up)'), ['there is no metric median']);
  assert.deepEqual(problems('sum(up'), ['brackets do not match']);
  assert.deepEqual(problems('1 > 0'), ['no metric is named']);
});
