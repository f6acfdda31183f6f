import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { product, productText } from '../lib/product.ts';
import { allCommands } from './all-commands.ts';
import { flagsOf } from './command.ts';
import { commandHelp, programHelp } from './help.ts';
import { main } from './main.ts';
import type { Terminal } from './terminal.ts';

async function run(...args: string[]): Promise<{ stdout: string; stderr: string; exitCode: unknown }> {
  const written = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      written[name] += text;
    },
  });
  const terminal: Terminal = { stdout: stream('stdout'), stderr: stream('stderr'), env: {} };
  await main(args, terminal);
  return { ...written, exitCode: terminal.exitCode };
}

test('kube-proxyctl alone, help, --help and -h list every command', async () => {
  for (const args of [[], ['help'], ['--help'], ['-h']]) {
    const { stdout, stderr, exitCode } = await run(...args);
    for (const { name } of allCommands) assert.match(stdout, new RegExp(`^ {2}${name} `, 'm'));
    assert.match(stdout, /^Exit codes:$/m);
    assert.equal(stderr, '');
    assert.equal(exitCode, 0);
  }
});

for (const command of allCommands) {
  const { name } = command;
  test(`kube-proxyctl help ${name} and ${name} --help show the flags of the command`, async () => {
    const { stdout, exitCode } = await run(name, '--help');
    assert.match(stdout, new RegExp(`^ {2}kube-proxyctl ${name} `, 'm'));
    for (const flag of flagsOf(command)) assert.match(stdout, new RegExp(`^ +(-\\w, )?--${flag.name} `, 'm'));
    assert.equal(exitCode, 0);
    assert.equal((await run('help', name)).stdout, stdout);
  });
}

test('help fits a terminal of 80 columns', () => {
  for (const text of [
    programHelp(allCommands, 80),
    ...allCommands.map((command) => commandHelp(command, 80)),
  ]) {
    // Examples stay on one line, so that they can be copied.
    const lines = text.split('\n').filter((line) => !line.startsWith('  kube-proxyctl '));
    for (const line of lines) assert.ok(line.length <= 80, line);
  }
});

const suggestions: [args: string, complaint: string, suggestion: string][] = [
  ['servces', 'unknown command "servces"', 'services'],
  ['help stauts', 'unknown command "stauts"', 'status'],
  ['services --namespce shop', 'unknown flag: --namespce', '--namespace'],
  ['--verison', 'unknown flag: --verison', '--version'],
  ['completion bsh', 'unknown shell "bsh": there are bash, zsh, fish', 'bash'],
];

for (const [args, complaint, suggestion] of suggestions) {
  test(`kube-proxyctl ${args} asks whether ${suggestion} was meant`, async () => {
    assert.deepEqual(await run(...args.split(' ')), {
      stdout: '',
      stderr: `Error: ${complaint}; did you mean ${suggestion}?\n`,
      exitCode: 1,
    });
  });
}

test('help of the kubectl plugin shows how kubectl calls it', async () => {
  const { stdout, exitCode } = await run('__plugin', 'services', '--help');
  assert.equal(exitCode, 0);
  assert.match(stdout, /^ {2}kubectl kube_proxy -N NODE services \[NAME\] \[flags\]$/m);
  assert.match((await run('__plugin')).stdout, /^ {2}kubectl kube_proxy -N NODE COMMAND /m);
});

test('kube-proxyctl --version names its version and commit, and the release', async () => {
  const { stdout, exitCode } = await run('--version');
  assert.equal(stdout, `kube-proxyctl of ${productText(product)}, for Kubernetes v1.37.0\n`);
  assert.equal(exitCode, 0);
});

const usageFaults: [args: string, complaint: string][] = [
  ['-o json', 'a command is needed'],
  ['help -o json', 'help has no flag --output'],
  ['completion', 'completion takes bash|zsh|fish, got none'],
  ['nope', 'unknown command "nope"'],
  ['--xyzzy', 'unknown flag: --xyzzy'],
  ['--version status', '--version takes no command, got "status"'],
  ['status web', 'status takes no arguments, got "web"'],
  ['explain 10.0.0.1', 'explain takes SRC DST[:PORT][/PROTO], got "10.0.0.1"'],
  ['services a b', 'services takes [NAME], got "a" "b"'],
  ['diff --interval 1s', 'diff has no flag --interval'],
  ['status --manifests x', 'status has no flag --manifests'],
  ['services --node n1', '--node needs --without-proxy, --manifests or --kubeconfig'],
  ['diff --proxy-mode ipvs', '--proxy-mode needs --without-proxy, --manifests or --kubeconfig'],
  ['services --manifests x --server y', '--server and --manifests exclude each other'],
  ['diff --kubeconfig x --server y', '--server and --kubeconfig exclude each other'],
  ['diff --kubeconfig x --manifests y', '--manifests and --kubeconfig exclude each other'],
  ['explain --live --without-proxy 10.0.0.1 10.0.0.2:80', '--live needs a running kube-proxy'],
  [
    'services --manifests x --config y --proxy-mode ipvs',
    '--proxy-mode has no effect with --config, which sets the mode',
  ],
  ['status --timeout 0s', 'invalid argument "0s" for "--timeout" flag: is not between 1ms and 24h'],
  ['top --interval 1000h', 'invalid argument "1000h" for "--interval" flag: is not between 1ms and 24h'],
  [
    'status -o xml',
    'invalid argument "xml" for "-o, --output" flag: is none of table, wide, json, yaml, name',
  ],
  ['ui --port 70000', 'invalid argument "70000" for "--port" flag: is not a number from 0 to 65535'],
  ['status -o name', 'status has no -o name'],
  ['services --count 3', '--count needs --watch'],
  ['flows --count 3', '--count needs --watch'],
  ['flows --by client', 'flows has no flag --by'],
  ['top --watch', 'top has no flag --watch'],
  ['top --by pod', 'invalid argument "pod" for "--by" flag: is none of service, endpoint, client'],
  ['top --sort age', 'invalid argument "age" for "--sort" flag: is none of connections, bytes, open, failed'],
  ['flows --protocol icmp', 'invalid argument "icmp" for "--protocol" flag: is none of TCP, UDP, SCTP'],
  ['status --kubeconfig x', 'status takes --kubeconfig only with -N NODE'],
  ['services --context x', '--context needs -N NODE'],
  ['services --proxy-port 1', '--proxy-port needs -N NODE'],
  ['status -N n1 --server x', '--on-node and --server exclude each other'],
  ['services -N n1 --manifests x', '--on-node and --manifests exclude each other'],
  ['explain -N n1 --live 10.0.0.1 10.0.0.2:80', '--on-node and --live exclude each other'],
  ['trace', 'trace takes SERVICE|SRC DST[:PORT][/PROTO], got none'],
  ['trace --packets 0 web', 'invalid argument "0" for "--packets" flag: is not between 1 and 1000'],
  ['trace --for 0s web', 'invalid argument "0s" for "--for" flag: is not between 1ms and 24h'],
  [
    'trace -N n1 shop/web',
    'trace runs on the node itself, not with -N: kubectl -n kube-system exec POD -- kube-proxyctl trace …, where POD is kube-proxy on that node',
  ],
  ['services -w --manifests x', '--watch needs a running kube-proxy'],
];

for (const [args, complaint] of usageFaults) {
  test(`the arguments ${JSON.stringify(args)} are a usage error`, async () => {
    assert.deepEqual(await run(...args.split(' ').filter(Boolean)), {
      stdout: '',
      stderr: `Error: ${complaint}; see kube-proxyctl --help\n`,
      exitCode: 1,
    });
  });
}

const faults: [args: string, complaint: RegExp][] = [
  ['status --server ftp://x', /the server "ftp:\/\/x" is not an http:\/\/ URL/],
  ['status --server http://127.0.0.1:1', /cannot ask kube-proxy at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/],
  ['status --config /nowhere/config.yaml', /open \/nowhere\/config\.yaml: no such file or directory/],
  ['diff --kubeconfig /nowhere/kubeconfig --proxy-mode nftables', /\/nowhere\/kubeconfig/],
  ['services --manifests /nowhere', /cannot read manifests at \/nowhere/],
  ['explain 10.0.0.1 fd00::1:80', /IPv6 addresses need brackets/],
];

for (const [args, complaint] of faults) {
  test(`an error names what is wrong with ${JSON.stringify(args)}`, async () => {
    const { stdout, stderr, exitCode } = await run(...args.split(' '));
    assert.equal(stdout, '');
    assert.match(stderr, complaint);
    assert.equal(exitCode, 1);
  });
}

test('status waits only some seconds for a proxy that hangs', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  try {
    const address = silent.address();
    assert.ok(typeof address === 'object' && address);
    const url = `http://127.0.0.1:${address.port}`;
    const { stdout, stderr, exitCode } = await run('status', '--server', url);
    assert.deepEqual(
      [stdout, stderr, exitCode],
      ['', `Error: cannot ask kube-proxy at ${url}: no answer within 5 s\n`, 1],
    );
    const longer = await run('status', '--server', url, '--timeout', '100ms');
    assert.match(longer.stderr, /no answer within 0\.1 s\n/);
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});
