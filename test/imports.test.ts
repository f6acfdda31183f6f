import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';

const src = resolve(import.meta.dirname, '../src');

/** What each folder of src/ may import besides itself (docs/architecture.md). */
const allowed: Record<string, readonly string[]> = {
  cli: ['config', 'model', 'lib'],
  config: ['model', 'lib'],
  kube: ['model', 'obs', 'lib'],
  sources: ['kube', 'model', 'obs', 'lib'],
  model: ['lib'],
  state: ['model', 'lib'],
  plan: ['model', 'lib'],
  proxier: [
    'backends/backend.ts',
    'inspect/family-view.ts',
    'inspect/journal.ts',
    'state',
    'plan',
    'health',
    'conntrack',
    'sources/source.ts',
    'model',
    'obs',
    'lib',
  ],
  inspect: [
    'plan',
    'backends/backend.ts',
    'backends/inspection.ts',
    'backends/node-facts.ts',
    'backends/packet-rules.ts',
    'model',
    'lib',
  ],
  traffic: [
    'inspect/traffic.ts',
    'inspect/traffic-api.ts',
    'inspect/explain-packet.ts',
    'backends/inspection.ts',
    'backends/mode.ts',
    'backends/node-facts.ts',
    'backends/packet-rules.ts',
    'plan',
    'kernel',
    'model',
    'obs',
    'lib',
  ],
  trace: ['inspect/api.ts', 'backends/inspection.ts', 'kernel', 'native/byte-order.ts', 'model', 'lib'],
  forwarder: ['native', 'model', 'lib'],
  backends: ['forwarder', 'plan', 'model', 'kernel', 'config/types.ts', 'obs', 'lib'],
  conntrack: ['model', 'kernel', 'obs', 'lib'],
  health: ['http', 'model', 'obs', 'lib'],
  http: ['obs', 'lib'],
  kernel: ['native', 'model', 'obs', 'lib'],
  native: ['lib'],
  obs: ['lib'],
  ui: [
    'inspect/api.ts',
    'inspect/traffic-api.ts',
    'inspect/explanation-words.ts',
    'inspect/pod-text.ts',
    'inspect/journal-words.ts',
    'trace/page-protocol.ts',
    'trace/report.ts',
    'trace/trace-words.ts',
    'backends/inspection.ts',
    'model/ip.ts',
    'lib',
  ],
  admin: ['http', 'inspect', 'obs', 'health', 'state', 'plan', 'config', 'lib'],
  lib: [],
};

test('imports point down the layers only', () => {
  const violations: string[] = [];
  for (const file of sourceFiles(src)) {
    const from = relative(src, file);
    const layer = from.split('/')[0] ?? '';
    // main.ts, app/ and ctl/ are the composition roots and may import everything; tests may, too.
    if (!from.includes('/') || layer === 'app' || layer === 'ctl' || from.endsWith('.test.ts')) continue;
    const rules = allowed[layer];
    assert.ok(rules, `src/${layer}/ has no import rule; add it here and to docs/architecture.md`);
    for (const target of importsOf(file)) {
      const to = relative(src, resolve(dirname(file), target));
      const ok = to.startsWith(`${layer}/`) || rules.some((rule) => to === rule || to.startsWith(`${rule}/`));
      if (!ok) violations.push(`${from} imports ${to}`);
    }
  }
  assert.deepEqual(violations, []);
});

test('only a browser loads the page: nothing else imports it', () => {
  for (const file of sourceFiles(src).filter((name) => !relative(src, name).startsWith('ui/'))) {
    const targets = importsOf(file).map((target) => relative(src, resolve(dirname(file), target)));
    assert.deepEqual(
      targets.filter((to) => to.startsWith('ui/')),
      [],
      relative(src, file),
    );
  }
});

test('a mode imports no other mode', () => {
  for (const file of sourceFiles(join(src, 'backends'))) {
    const [, mode, rest] = relative(src, file).split('/');
    if (rest === undefined) continue;
    for (const target of importsOf(file)) {
      const [layer, other, inside] = relative(src, resolve(dirname(file), target)).split('/');
      const foreign = layer === 'backends' && inside !== undefined && other !== mode;
      assert.ok(!foreign, `${relative(src, file)} imports backends/${other}/${inside}`);
    }
  }
});

/** Files outside a mode that may import from its folder: modes plug in at one place. */
const plugsModesIn = 'app/modes.ts';

test('only app/modes.ts imports from the folder of a mode', () => {
  for (const file of productFiles()) {
    const from = relative(src, file);
    if (from.startsWith('backends/') || from === plugsModesIn) continue;
    for (const target of importsOf(file)) {
      const to = relative(src, resolve(dirname(file), target));
      assert.ok(!/^backends\/[^/]+\//.test(to), `${from} imports ${to}`);
    }
  }
});

const modeNames = 'nftables|iptables|ipvs|userspace';
/** A mode's name as a string or as a key of an object: a comparison with a mode needs one of these. */
const modeName = new RegExp(`(['\`])(?:${modeNames})\\1|[{,]\\s*(?:${modeNames})\\s*[:,}]`);

/** Where one of these words is not the name of a mode. */
const exceptions: Readonly<Record<string, string>> = {
  'model/proxy-mode.ts': 'the list of modes',
  'kernel/iptables/commands.ts': 'the program iptables',
  'kernel/ipvs/openers.ts': 'the netlink client of IPVS',
  'kernel/iptables/rule-match.ts': 'the match ipvs of iptables rules',
};

test('no module compares the name of a mode: what differs between modes is a field of Mode', () => {
  for (const file of productFiles()) {
    const from = relative(src, file);
    if (/^(backends|config)\//.test(from) || from === plugsModesIn) continue;
    const found = modeName.exec(readFileSync(file, 'utf8'))?.[0];
    if (from in exceptions) assert.ok(found, `${from} does without its exception, remove that`);
    else assert.equal(found, undefined, `${from} has ${found}; make it a field or method of Mode`);
  }
});

test('a backend cannot choose endpoints: it reaches no module that computes their lists', () => {
  const choosers = ['plan/endpoint-sets.ts', 'plan/topology.ts'].map((name) => join(src, name));
  for (const chooser of choosers) assert.ok(existsSync(chooser), chooser);
  const reached = new Map<string, string>();
  const backends = productFiles().filter((file) => relative(src, file).startsWith('backends/'));
  const pending = backends.map((file) => ({ file, path: relative(src, file) }));
  for (const { file, path } of pending) {
    if (reached.has(file)) continue;
    reached.set(file, path);
    for (const target of importsOf(file, true)) {
      const next = resolve(dirname(file), target);
      pending.push({ file: next, path: `${path} → ${relative(src, next)}` });
    }
  }
  for (const chooser of choosers) assert.equal(reached.get(chooser), undefined);
});

/** What a plan's decisions and frontends follow from. */
const inputsOfPolicy = /\b(internalPolicyLocal|externalPolicyLocal|externalIPs|loadBalancerVIPs)\b/;

test('a backend decides nothing: it takes destinations and decisions from the frontends of a plan', () => {
  for (const file of productFiles().filter((name) => relative(src, name).startsWith('backends/'))) {
    const found = inputsOfPolicy.exec(readFileSync(file, 'utf8'))?.[0];
    assert.equal(found, undefined, `${relative(src, file)} reads ${found}; see plan/frontend.ts`);
  }
});

function productFiles(): string[] {
  return sourceFiles(src).filter((file) => !/(\.test|\/testing)\.ts$/.test(file));
}

function sourceFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(directory, name));
}

/** Relative module specifiers of static imports, exports-from and dynamic imports; at will without types. */
function importsOf(file: string, atRunTime = false): string[] {
  const all = readFileSync(file, 'utf8');
  const text = atRunTime ? all.replace(/^(?:import|export) type [^;]*;$/gm, '') : all;
  return [...text.matchAll(/(?:from\s+|import\(\s*|import\s+)'(\.[^']+)'/g)].map((match) => match[1] ?? '');
}
