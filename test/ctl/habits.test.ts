import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import type { EndpointList, ExplanationReport, ServiceList, StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { kubeProxyctl, run } from '../program/run.ts';
import { Site } from '../program/started.ts';
import { complaint, eventuallyReported, printed } from './ctl.ts';
import { Shell, shellUnavailable } from './shell.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const METRICS = 'http://127.0.0.1:10249';
const web = 'shop/web:http/TCP';
const lonely = 'shop/lonely:http/TCP';
const blog = 'blog/web:http/TCP';

async function json<T>(args: string): Promise<T> {
  return JSON.parse(await printed(`${args} -o json`)) as T;
}

/** The service ports that a command lists. */
async function services(args: string): Promise<string[]> {
  return (await json<ServiceList>(args)).items.map(({ service }) => service);
}

/** Runs kube-proxyctl on a terminal of this width and returns its lines. */
async function onTerminal(columns: number, args: string): Promise<string[]> {
  const command = `stty cols ${columns} rows 50; NO_COLOR=1 exec ${kubeProxyctl} ${args}`;
  const { code, stdout } = await run('script', ['-qec', command, '/dev/null']);
  assert.equal(code, 0, stdout);
  return stdout.trimEnd().split(/\r?\n/);
}

/** The words of the first line with headings. */
function headings(lines: readonly string[]): string[] {
  return (lines.find((line) => /^[A-Z ]+$/.test(line)) ?? '').split(/ +/);
}

/** A kube-proxyctl that runs until it is interrupted. */
class Watch {
  readonly #child: ChildProcess;
  #stdout = '';

  constructor(args: readonly string[]) {
    this.#child = spawn(kubeProxyctl, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
  }

  shows(pattern: RegExp): Promise<void> {
    return eventually(
      `${pattern} in ${this.#child.spawnargs.join(' ')}`,
      async () => pattern.test(this.#stdout),
      {
        withinMs: 60_000,
      },
    );
  }

  /** Returns the signal that ended it. */
  async interrupt(): Promise<unknown> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGINT');
    return (await ended)[1];
  }
}

describe('kube-proxyctl and the habits of an operator', { skip: skip ?? false }, () => {
  let site: Site;

  before(async () => {
    sh('ip', 'addr', 'add', '192.0.2.1/32', 'dev', 'lo');
    site = await Site.open();
    const { spec, ...rest } = apiService('web');
    const ports = [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 30080 }];
    const outside = { type: 'NodePort', externalIPs: ['203.0.113.7'], ports };
    site.api.put('services', { ...rest, spec: { ...(spec as object), ...outside } });
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5', '10.244.0.6']));
    site.api.put('services', apiService('lonely', 80, { clusterIP: '10.96.0.2' }));
    const other = apiService('web', 80, { clusterIP: '10.96.0.3' });
    site.api.put('services', { ...other, metadata: { name: 'web', namespace: 'blog' } });
    const proxy = await site.start(site.writeConfig({ metricsBindAddress: '127.0.0.1:10249' }));
    await proxy.serves(METRICS);
    await eventuallyReported('the first sync', async () => {
      const { families } = await json<StatusReport>('status');
      return families.every(({ syncs }) => syncs > 0);
    });
  });
  after(() => site.close());

  it('-n shows one namespace, and looks up a NAME without a namespace there', async () => {
    assert.deepEqual(await services('services'), [blog, lonely, web]);
    assert.deepEqual(await services('services -n shop'), [lonely, web]);
    assert.deepEqual(await services('services -n shop -A'), [blog, lonely, web]);
    assert.deepEqual(await services('services web'), [blog, web]);
    assert.deepEqual(await services('services web -n blog'), [blog]);
    assert.deepEqual((await json<EndpointList>('endpoints -n blog')).items, []);
    assert.equal((await json<EndpointList>('endpoints -n shop')).items.length, 2);
    assert.match(
      await complaint('services lonely -n blog'),
      /no service port is called "lonely" in namespace blog/,
    );
    assert.match(await printed('diff -n shop'), /^IPv4: no difference$/m);
  });

  it('services and endpoints are found by every address', async () => {
    for (const address of [
      '10.96.0.1',
      '10.96.0.1:80',
      '203.0.113.7:80/tcp',
      '192.0.2.1:30080',
      '10.244.0.5',
    ]) {
      assert.deepEqual(await services(`services ${address}`), [web], address);
    }
    const endpointsAt = async (address: string) =>
      (await json<EndpointList>(`endpoints ${address}`)).items.map(({ endpoint }) => endpoint);
    assert.deepEqual(await endpointsAt('10.96.0.1'), ['10.244.0.5:8080', '10.244.0.6:8080']);
    assert.deepEqual(await endpointsAt('10.244.0.5'), ['10.244.0.5:8080']);
    assert.match(
      await complaint('services 10.96.0.99'),
      /no service port or endpoint has the address "10\.96\.0\.99"/,
    );
    assert.match(await printed('diff 10.96.0.1:80'), /^IPv4: no difference$/m);
  });

  it('explain takes the name of a Service as its destination', async () => {
    for (const destination of ['shop/web', 'shop/web:80', 'shop/web:http/TCP', 'web:80 -n shop']) {
      const { packet, planned } = await json<ExplanationReport>(`explain 10.244.0.9 ${destination}`);
      assert.deepEqual([packet.destination, packet.port, planned.service], ['10.96.0.1', 80, web]);
    }
    assert.match(
      await complaint('explain 10.244.0.9 web'),
      /"web" means several service ports: blog\/web:http, shop/,
    );
    assert.match(await complaint('explain fd00::9 shop/web'), /shop\/web:http has no IPv6 address/);
  });

  it('KUBE_PROXYCTL_SERVER stands in for --server', async () => {
    const at = (server: string, ...args: string[]) =>
      run(kubeProxyctl, ['status', ...args], { env: { KUBE_PROXYCTL_SERVER: server } });
    assert.match((await at('127.0.0.1:1')).stderr, /cannot ask kube-proxy at http:\/\/127\.0\.0\.1:1: /);
    assert.equal((await at('127.0.0.1:1', '--server', METRICS)).code, 0);
    assert.equal((await at(METRICS)).code, 0);
  });

  it('tables fit a terminal of 80 columns, and are complete with -o wide, on a wide one, and in a pipe', async () => {
    const commands = [
      'status',
      'services',
      'services shop/web',
      'endpoints',
      'endpoints -w --count 1',
      'diff',
    ];
    for (const command of commands) {
      const narrow = await onTerminal(80, command);
      const rows = narrow.filter((line) => /\S {2,}\S/.test(line));
      assert.ok(
        rows.every((line) => line.length <= 80),
        narrow.join('\n'),
      );
      const wide = await onTerminal(200, command);
      assert.deepEqual(
        wide.filter((line) => line.includes('…') || line.startsWith('(-o wide')),
        [],
      );
      const piped = (await printed(command)).trimEnd().split('\n');
      assert.deepEqual(headings(piped), headings(wide), command);
      assert.ok(headings(await onTerminal(80, `${command} -o wide`)).length >= headings(wide).length);
    }
    assert.match((await onTerminal(80, 'services')).join('\n'), /^shop\/web:http\/TCP .* 2 endpoints/m);
  });

  it('help fits a terminal, too, and has one line per flag in a pipe', async () => {
    for (const command of ['', 'help services', 'explain --help', 'help completion']) {
      const lines = await onTerminal(80, command);
      const tooLong = lines.filter((line) => line.length > 80 && !line.startsWith('  kube-proxyctl '));
      assert.deepEqual(tooLong, []);
    }
    assert.match(await printed('help services'), /^ {2}-n, --namespace string +Only Services of /m);
    const bare = await run(kubeProxyctl, []);
    assert.deepEqual([bare.code, bare.stdout], [0, await printed('help')]);
  });

  it('-o name prints names that every command takes back', async () => {
    const names = (await printed('services -o name')).trimEnd().split('\n');
    assert.deepEqual(names, [blog, lonely, web]);
    for (const name of names) assert.deepEqual(await services(`services ${name}`), [name]);
    const [first = ''] = (await printed('endpoints -o name')).split('\n');
    assert.equal(first, '10.244.0.5:8080');
    assert.equal((await json<EndpointList>(`endpoints ${first}`)).items.length, 1);
    assert.equal(await printed('diff -o name'), '');
  });

  for (const name of ['bash', 'zsh', 'fish'] as const) {
    const missing = shellUnavailable(name) ?? false;
    it(`${name} completes commands, flags, values, namespaces, Services and files`, {
      skip: missing,
    }, async () => {
      const shell = await Shell.open(name);
      try {
        const config = site.path('config.yaml');
        for (const [typed, completed] of [
          ['servi', 'services'],
          ['help endp', 'help endpoints'],
          ['services --name', 'services --namespace'],
          ['services -o js', 'services -o json'],
          ['services --output=wi', 'services --output=wide'],
          ['services -n bl', 'services -n blog'],
          ['services --namespace=bl', 'services --namespace=blog'],
          ['services shop/lo', 'services shop/lonely'],
          ['endpoints -n shop lon', 'endpoints -n shop lonely'],
          ['explain node blog/web:h', 'explain node blog/web:http'],
          [`status --config ${config.slice(0, -4)}`, `status --config ${config}`],
          [`status --config=${config.slice(0, -4)}`, `status --config=${config}`],
          ['services nothing-like-it', 'services nothing-like-it'],
        ]) {
          assert.equal(
            (await shell.completed(`kube-proxyctl ${typed}`)).trim(),
            `kube-proxyctl ${completed}`,
          );
        }
      } finally {
        await shell.close();
      }
    });
  }

  it('-w shows changes as they happen, until Ctrl-C ends it', async () => {
    const watching = ['services', 'endpoints', 'status'].map(
      (command) =>
        new Watch([command, ...(command === 'status' ? [] : ['-n', 'shop']), '-w', '--interval', '100ms']),
    );
    const asJson = new Watch(['endpoints', 'web', '-w', '-o', 'json', '--interval', '100ms']);
    const [ports, pods, health] = watching;
    await ports?.shows(/ADDED +shop\/web:http\/TCP /);
    await pods?.shows(/ADDED +shop\/web:http\/TCP +10\.244\.0\.6:8080 /);
    await health?.shows(/: healthy\n/);
    await asJson.shows(/^\{"type":"ADDED",.*10\.244\.0\.6/m);
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5', '10.244.0.7']));
    site.api.delete('services', 'shop', 'lonely');
    await ports?.shows(/DELETED +shop\/lonely:http\/TCP /);
    await pods?.shows(/DELETED +shop\/web:http\/TCP +10\.244\.0\.6:8080 /);
    await pods?.shows(/ADDED +shop\/web:http\/TCP +10\.244\.0\.7:8080 /);
    await asJson.shows(/^\{"type":"DELETED",.*10\.244\.0\.6/m);
    await health?.shows(/\n\n\d{4}-\d\d-\d\dT.*\nkube-proxy .*\nIPv4 +192\.0\.2\.1 +2 /s);
    for (const one of [...watching, asJson]) assert.equal(await one.interrupt(), 'SIGINT');
  });
});
