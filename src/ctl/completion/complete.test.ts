import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allCommands } from '../all-commands.ts';
import { allFlags } from '../flags.ts';
import { completionLines } from './complete.ts';

const port = { portName: 'http', port: 80 };
const services = [
  { namespace: 'shop', name: 'web', ...port },
  { namespace: 'shop', name: 'web', portName: 'https', port: 443 },
  { namespace: 'shop', name: 'cart', portName: '', port: 8080 },
  { namespace: 'blog', name: 'web', ...port },
];

/** The words that fit at the end of a command line of a proxy with these Services. */
async function words(line: string): Promise<string[]> {
  const lines = await completionLines(line.split(' '), {
    services: async (_options, namespace) =>
      services.filter((one) => namespace === undefined || one.namespace === namespace),
    nodes: async () => ['node-1', 'node-2'],
  });
  return lines.map((text) => text.replace(/\t.*/, ''));
}

const cases: [line: string, words: readonly string[]][] = [
  ['s', ['services', 'status']],
  ['nope', []],
  ['services --name', ['--namespace']],
  ['--ver', ['--version']],
  ['status --manif', []],
  ['help --', ['--help']],
  ['services -o ', ['json', 'name', 'table', 'wide', 'yaml']],
  ['status -o n', []],
  ['services --output=y', ['--output=yaml']],
  ['services --proxy-mode i', ['iptables', 'ipvs']],
  ['services --config ', [':files']],
  ['services --config=a', [':files']],
  ['services --timeout ', []],
  ['services -n ', ['blog', 'shop']],
  ['-n shop services ', ['cart', 'web']],
  ['services --namespace=b', ['--namespace=blog']],
  ['services ', ['blog/web', 'shop/cart', 'shop/web']],
  ['services shop/', ['shop/cart', 'shop/web']],
  ['services shop/web:', ['shop/web:443', 'shop/web:80', 'shop/web:http', 'shop/web:https']],
  ['services -n shop web:h', ['web:http', 'web:https']],
  ['services ca', ['cart']],
  ['services web extra', []],
  ['explain ', ['node']],
  ['explain node blog/', ['blog/web']],
  ['top shop/c', ['shop/cart']],
  ['top --by ', ['client', 'endpoint', 'service']],
  ['top --sort ', ['bytes', 'connections', 'failed', 'open']],
  ['flows --state S', ['SYN_RECV', 'SYN_SENT']],
  ['flows --protocol=', ['--protocol=SCTP', '--protocol=TCP', '--protocol=UDP']],
  ['flows --w', ['--watch']],
  ['status extra', []],
  ['-N ', ['node-1', 'node-2']],
  ['status --on-node=node-1', ['--on-node=node-1']],
  ['help sta', ['status']],
  ['completion ', ['bash', 'fish', 'zsh']],
  ['services --wrong shop/c', ['shop/cart']],
];

for (const [line, wanted] of cases) {
  test(`kube-proxyctl ${JSON.stringify(line)} completes to ${wanted.join(' ') || 'nothing'}`, async () =>
    assert.deepEqual(await words(line), wanted));
}

test('without a word, every command is offered, and after a command every one of its flags', async () => {
  assert.deepEqual(await words(''), allCommands.map(({ name }) => name).sort());
  const offered = new Set((await Promise.all(allCommands.map(({ name }) => words(`${name} -`)))).flat());
  const missing = allFlags.filter(({ name }) => !offered.has(`--${name}`)).map(({ name }) => name);
  assert.deepEqual(missing, ['version']);
});
