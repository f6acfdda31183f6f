import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { type DaemonSet, probeNames } from '../deploy/daemon-set.ts';
import { eventually } from '../eventually.ts';
import { Site } from './started.ts';

interface Page {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
}

interface Vector {
  readonly pages: Readonly<Record<string, Page>>;
  readonly events: readonly Record<string, unknown>[];
}

const daemonSet = resolve(import.meta.dirname, '../../deploy/kustomize/base/daemon-set.yaml');

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const vectors = resolve(import.meta.dirname, '../vectors/pages/nftables.json');
const { pages, events } = JSON.parse(readFileSync(vectors, 'utf8')) as Vector;

/** The configuration of the recorded program, as its /configz shows it. */
const recordedSettings = {
  enableProfiling: true,
  metricsBindAddress: '0.0.0.0:10249',
  clusterCIDR: '10.244.0.0/16,fd00:244::/32',
  nftables: { syncPeriod: '10s', minSyncPeriod: '100ms' },
};

/** Pages whose body differs from the recorded one, and how it is compared instead. */
const comparisons: Record<string, (body: string, recorded: string) => void> = {
  '10249/flagz': sameFlags,
  '10249/statusz': sameLabels,
  '10249/debug/pprof/': (body) => assert.match(body, /<a href=.*profile/),
  '10256/healthz': sameKeys,
  '10256/livez': sameKeys,
};

describe('pages, as recorded from upstream in nftables mode', { skip: skip ?? false }, () => {
  let site: Site;

  before(async () => {
    site = await Site.open();
    const config = site.writeConfig({
      ...recordedSettings,
      clientConnection: {
        kubeconfig: site.path('kubeconfig'),
        acceptContentTypes: 'application/json',
        contentType: 'application/json',
      },
    });
    const proxy = await site.start(config);
    await proxy.serves('http://127.0.0.1:10249/healthz');
  });
  after(() => site.close());

  for (const [path, recorded] of Object.entries(pages)) {
    it(path, async () => {
      const response = await fetch(`http://127.0.0.1:${path}`);
      const body = (await response.text()).replaceAll(site.directory, 'DIR');
      assert.equal(response.status, recorded.status);
      for (const header of recorded.headers) {
        const [name = '', value] = header.split(': ');
        // The server may choose how it splits a body.
        if (name !== 'Transfer-Encoding') assert.equal(response.headers.get(name), value, name);
      }
      (comparisons[path] ?? assert.equal)(body, recorded.body);
    });
  }

  it('the probes of the DaemonSet get 200', async () => {
    const [container] = (parse(readFileSync(daemonSet, 'utf8')) as DaemonSet).spec.template.spec.containers;
    for (const name of probeNames) {
      const { path, port } = container?.[name]?.httpGet ?? {};
      const number = container?.ports?.find((declared) => declared.name === port)?.containerPort;
      assert.equal((await fetch(`http://127.0.0.1:${number}${path}`)).status, 200, name);
    }
  });

  it('wildcard addresses answer both families', async () => {
    for (const host of ['127.0.0.1', '[::1]']) {
      assert.equal((await fetch(`http://${host}:10256/livez`)).status, 200);
      assert.equal((await fetch(`http://${host}:10249/healthz`)).status, 200);
    }
  });

  it('the start event is the one that upstream sends', async () => {
    const [recorded] = events;
    // The program sends it in the background.
    await eventually('the event', () => site.api.store.list('events').length > 0);
    const sent = site.api.requests.filter(({ method, path }) => method === 'POST' && path.includes('events'));
    assert.equal(sent.length, 1);
    const objects = [...site.api.store.list('events')].map(({ raw }) => withoutTimes(raw));
    assert.deepEqual(objects, [withoutTimes(recorded ?? {})]);
  });
});

/** Name and value of every flag; every upstream process chooses a random separator. */
function flagLines(body: string): Map<string, string> {
  const lines = body.split('\n').slice(3).filter(Boolean);
  return new Map(
    lines.map((line) => {
      const [, name = '', value = ''] = /^([a-z0-9-]+)(?:: |[:= ])(.*)$/.exec(line) ?? [];
      return [name, value];
    }),
  );
}

function sameFlags(body: string, recorded: string): void {
  const own = flagLines(body);
  const ours = {
    manifests: '',
    'dry-run': 'false',
    output: 'text',
    'inspection-from': '[]',
    'service-metrics': '[]',
    'service-metrics-max': '1000',
    'reset-departed': 'off',
    'nftables-fast-path': 'off',
    'nftables-fast-path-after': '20',
  };
  for (const [name, value] of Object.entries(ours)) {
    assert.equal(own.get(name), value);
    own.delete(name);
  }
  assert.deepEqual(own, flagLines(recorded));
  assert.deepEqual(body.split('\n').slice(0, 3), recorded.split('\n').slice(0, 3));
}

/** Checks for the same labels in the same order, with any values. */
function sameLabels(body: string, recorded: string): void {
  const labels = (text: string) => text.split('\n').map((line) => line.split(/[:=]|\s{2}/)[0]);
  assert.deepEqual(labels(body), labels(recorded));
  assert.match(body, /\/configz \/flagz \/healthz \/metrics \/proxyMode/);
}

/** Checks for the same keys in the same order, times in RFC 3339, and other values equal. */
function sameKeys(body: string, recorded: string): void {
  const shape = (text: string) => text.replace(/"\d{4}-\d\d-\d\dT[\d:]+(\.\d+)?Z"/g, '"TIME"');
  assert.equal(shape(body), shape(recorded));
}

/** An event without fields that depend on time and place; the server does not store its kind in the object. */
function withoutTimes(event: Record<string, unknown>): Record<string, unknown> {
  const {
    kind: _kind,
    apiVersion: _version,
    metadata: _metadata,
    eventTime,
    reportingInstance,
    ...rest
  } = event;
  assert.match(String(eventTime), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.match(String(reportingInstance), /^kube-proxy-/);
  return rest;
}
