import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { settingsOf } from '../../../test/iptables/harness.ts';
import { type CompiledService, compileService, ownChains } from './compile.ts';
import { CompiledServices } from './compiled-services.ts';
import { declarations } from './declarations.ts';
import { filterChains, filterTail, natChains, natTail } from './fixed-rules.ts';
import { type ChainSelection, RestoreInput } from './restore-input.ts';

const settings = settingsOf('IPv4');
const node = {
  filterTail: filterTail(settings, { invalidDropped: true, localhostAccepted: true }),
  natTail: natTail(settings, []),
};

function services(count: number): CompiledService[] {
  return Array.from({ length: count }, (_, i) => {
    const endpoints =
      i % 5 === 4 ? [] : [{ ip: `10.244.${i >> 8}.${i & 255}` }, { ip: `10.245.${i >> 8}.${i & 255}` }];
    const plan = planOf({ name: `web-${i}`, clusterIP: `10.96.${i >> 8}.${i & 255}` }, endpoints);
    return compileService(plan, settings, { comments: true, countLocalhost: true });
  });
}

function everything(list: readonly CompiledService[], stale: ChainSelection['stale'] = []): RestoreInput {
  const own = new Map(list.map((service) => [service.key, ownChains(service, settings)]));
  const scope = { filter: new Set(filterChains(settings)), nat: new Set(natChains), own, stale };
  return new RestoreInput(settings, new CompiledServices(list), node, scope);
}

const linesOf = (input: RestoreInput) => [...input].join('').split('\n').slice(0, -1);

test('every line that names a service port belongs to it, removals to their chain', () => {
  const list = services(10);
  const input = everything(list, [
    { name: 'KUBE-SVC-OLD', keep: false },
    { name: 'KUBE-SVC-KEPT', keep: true },
  ]);
  const lines = linesOf(input);
  for (const [at, line] of lines.entries()) {
    const named = /default\/(web-\d+)[ "]/.exec(line)?.[1];
    const owner = input.ownerOf(at + 1);
    if (named !== undefined) assert.deepEqual(owner, { kind: 'service', key: `default/${named}/TCP` }, line);
    if (line === 'COMMIT' || line.startsWith('*')) assert.equal(owner, undefined);
  }
  const removals = lines.flatMap((line, at) => (line.startsWith('-X') ? [input.ownerOf(at + 1)] : []));
  assert.deepEqual(removals, [{ kind: 'removal', chain: 'KUBE-SVC-OLD' }]);
  assert.ok(lines.includes(':KUBE-SVC-KEPT - [0:0]'));
  assert.equal(input.ownerOf(lines.length + 1), undefined);
});

test('counts the rules that it writes', () => {
  const input = everything(services(12), [{ name: 'KUBE-SVC-OLD', keep: false }]);
  const lines = linesOf(input);
  const border = lines.indexOf('*nat');
  const rulesIn = (part: readonly string[]) => part.filter((line) => line.startsWith('-A ')).length;
  assert.deepEqual(input.countRules(), {
    filter: rulesIn(lines.slice(0, border)),
    nat: rulesIn(lines.slice(border)),
  });
});

test('comes in pieces of a bearable size, and again the same', () => {
  const input = everything(services(2000));
  const pieces = [...input];
  assert.ok(pieces.length > 10);
  assert.ok(Math.max(...pieces.map((piece) => piece.length)) < 70_000);
  assert.equal([...input].join(''), pieces.join(''));
});

test('nothing in scope is no input', () => {
  const scope = { filter: new Set<string>(), nat: new Set<string>(), own: new Map(), stale: [] };
  const input = new RestoreInput(settings, new CompiledServices(services(3)), node, scope);
  assert.ok(input.isEmpty);
  assert.deepEqual([...input], []);
  assert.deepEqual(input.countRules(), { filter: 0, nat: 0 });
});

test('chains are declared in the order of their names', () => {
  const lines = linesOf(everything(services(300))).filter((line) => /^:KUBE-S(VC|EP)-/.test(line));
  assert.ok(lines.length > 500);
  assert.deepEqual(lines, lines.toSorted());
  const names = ['KUBE-SVC-B', 'KUBE-FW-ZZ', 'KUBE-SVC-AB', 'KUBE-SVC-AA', 'KUBE-S'];
  const declared = [...declarations(names)].flat().map((line) => line.slice(1).split(' ')[0]);
  assert.deepEqual(declared, names.toSorted());
});
