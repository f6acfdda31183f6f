/** Changes of the configuration file while the program runs and connections go through its rules. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { ConfigurationReport, StatusReport } from '../../src/inspect/api.ts';
import { run as command, enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { ipvsUnavailable } from '../ipvs/on-ipvs-kernel.ts';
import { kubeProxyctl, run } from './run.ts';
import { inspect, METRICS_URL } from './served-pages.ts';
import { SoleNode } from './sole-node.ts';
import type { StartedProxy } from './started.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);
const withoutIpvs = (await ipvsUnavailable()) ?? false;

/** Changes in a row, in each mode. */
const CHANGES = Number(process.env.KPT_LIVE_CHANGES ?? 8);
/** Endpoint of a Service whose connections stay open. */
const echoAddress = '192.0.2.2';

/** Settings that are changed at random; each takes effect without a restart. */
const valid = fc.record(
  {
    nftables: fc.record({
      masqueradeAll: fc.boolean(),
      masqueradeBit: fc.integer({ min: 0, max: 31 }),
      minSyncPeriod: fc.constantFrom('0s', '100ms', '1s'),
      syncPeriod: fc.constantFrom('10s', '30s'),
    }),
    iptables: fc.record({
      masqueradeAll: fc.boolean(),
      masqueradeBit: fc.integer({ min: 0, max: 31 }),
      localhostNodePorts: fc.boolean(),
      minSyncPeriod: fc.constantFrom('100ms', '1s'),
      syncPeriod: fc.constantFrom('10s', '30s'),
    }),
    // Not the scheduler: the kernel refuses connections while it replaces one.
    ipvs: fc.record({
      strictARP: fc.boolean(),
      excludeCIDRs: fc.constantFrom([], ['198.51.100.0/24']),
      tcpFinTimeout: fc.constantFrom('0s', '30s'),
      syncPeriod: fc.constantFrom('10s', '30s'),
    }),
    nodePortAddresses: fc.constantFrom([], ['primary'], ['192.0.2.0/24', '2001:db8::/64'], ['127.0.0.0/8']),
    clusterCIDR: fc.constantFrom('', '10.244.0.0/16', '10.0.0.0/8,fd00::/64'),
    detectLocalMode: fc.constantFrom('ClusterCIDR', 'BridgeInterface', 'InterfaceNamePrefix'),
    detectLocal: fc.constant({ bridgeInterface: 'cni0', interfaceNamePrefix: 'veth' }),
    logging: fc.record({
      format: fc.constantFrom('text', 'json'),
      verbosity: fc.integer({ min: 0, max: 4 }),
    }),
    oomScoreAdj: fc.integer({ min: 0, max: 100 }),
    enableProfiling: fc.boolean(),
    configSyncPeriod: fc.constantFrom('5m', '7m'),
  },
  { requiredKeys: ['nftables', 'iptables', 'ipvs', 'detectLocal'] },
);

const invalid = fc.constantFrom<Record<string, unknown>>(
  { mode: 'nft' },
  { nodePortAddresses: ['everywhere'] },
  { iptables: { syncPeriod: 'soon' } },
  { oomScoreAdj: 5000 },
  { logging: { format: 'xml' } },
);

/** Connections through a Service, one after another, and one that stays open all the time. */
class Traffic {
  readonly #node: SoleNode;
  readonly #lasting: Socket;
  readonly #loop: Promise<void>;
  #isOver = false;
  #isLastingBroken = false;
  connections = 0;
  failures = 0;

  constructor(node: SoleNode) {
    this.#node = node;
    this.#lasting = connect({ host: '10.96.0.2', port: 80 });
    this.#lasting.on('error', () => {
      this.#isLastingBroken = true;
    });
    this.#loop = this.#connect();
  }

  stop(): void {
    this.#isOver = true;
    this.#lasting.destroy();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
    const answer = new Promise<string>((resolve) =>
      this.#lasting.once('data', (data) => resolve(String(data))),
    );
    this.#lasting.write('still there');
    assert.equal(await answer, 'still there');
    this.#lasting.destroy();
    assert.ok(this.connections > 0);
    assert.deepEqual(
      [this.failures, this.#isLastingBroken],
      [0, false],
      `of ${this.connections} connections`,
    );
  }

  async #connect(): Promise<void> {
    while (!this.#isOver) {
      this.connections++;
      if (!(await this.#node.stillAnswers('10.96.0.1'))) this.failures++;
    }
  }
}

describe('changes of the configuration file', { skip }, () => {
  let node: SoleNode;
  let echo: Server;
  let proxy: StartedProxy;
  let config: string;
  let other: ChildProcess | undefined;
  let traffic: Traffic | undefined;

  before(async () => {
    node = await SoleNode.open();
    command('ip', 'addr', 'add', `${echoAddress}/32`, 'dev', 'lo');
    echo = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(8080, echoAddress);
    node.site.api.put('services', apiService('web'));
    node.site.api.put('endpointSlices', apiSlice('web', [SoleNode.address]));
    node.site.api.put('services', apiService('echo', 80, { clusterIP: '10.96.0.2' }));
    node.site.api.put('endpointSlices', apiSlice('echo', [echoAddress]));
  });
  afterEach(async () => {
    traffic?.stop();
    other?.kill('SIGKILL');
    await node.stop();
    await node.nft('flush', 'ruleset');
  });
  after(async () => {
    echo.close();
    await node.close();
  });

  async function start(mode: string): Promise<void> {
    config = node.site.writeConfig({ mode });
    proxy = await node.site.start(config);
    await proxy.serves(METRICS_URL);
    // Not by connections: one without rules leaves a conntrack entry, and a later one with the same port would follow that.
    await eventually('the first syncs', async () => {
      const { families } = await inspect<StatusReport>('status');
      return families.every(({ lastSync }) => lastSync !== null);
    });
  }

  async function configuration(): Promise<ConfigurationReport> {
    const report = await inspect<StatusReport>('status');
    assert.ok(report.configuration);
    return report.configuration;
  }

  async function eventuallyConfiguration(
    what: string,
    holds: (report: ConfigurationReport) => boolean,
  ): Promise<ConfigurationReport> {
    await eventually(what, async () => holds(await configuration()), {
      onTimeout: () => proxy.stderr.slice(-4000),
    });
    return await configuration();
  }

  /** Writes a valid file and waits until it is in use. */
  async function apply(settings: Record<string, unknown>): Promise<ConfigurationReport> {
    node.site.writeConfig(settings);
    const sha256 = hash('sha256', readFileSync(config));
    return await eventuallyConfiguration(JSON.stringify(settings), (report) => report.sha256 === sha256);
  }

  for (const mode of ['nftables', 'iptables', 'ipvs']) {
    const options = { skip: mode === 'ipvs' && withoutIpvs };
    it(
      `fails no connection in ${mode} mode while valid and invalid files follow each other`,
      options,
      async () => {
        await start(mode);
        const { pid } = proxy;
        traffic = new Traffic(node);
        let generation = 1;
        const wrongs = fc.sample(invalid, CHANGES);
        for (const [i, settings] of fc.sample(valid, CHANGES).entries()) {
          const before = await configuration();
          const report = await apply({ mode, ...settings });
          if (report.sha256 !== before.sha256) generation++;
          assert.equal(report.generation, generation);
          const wrong = wrongs[i];
          node.site.writeConfig({ mode, ...settings, ...wrong });
          await eventuallyConfiguration(JSON.stringify(wrong), ({ onDisk }) => onDisk.state === 'Unusable');
          assert.equal((await configuration()).generation, generation);
        }
        await traffic.end();
        assert.equal(proxy.pid, pid);
        assert.equal((await inspect<{ items: unknown[] }>('diff')).items.length, 0);
      },
    );
  }

  it('applies a setting to the rules, the pages and the log', async () => {
    await start('nftables');
    const rules = () => command('nft', 'list', 'table', 'ip', 'kube-proxy');
    assert.doesNotMatch(rules(), /0x00000008/);
    const { generation, lastChange } = await apply({
      nftables: { masqueradeBit: 3, masqueradeAll: true },
      enableProfiling: true,
      logging: { format: 'json', verbosity: 3 },
      oomScoreAdj: 77,
      clientConnection: { kubeconfig: node.site.path('kubeconfig'), qps: 50, burst: 100 },
    });
    assert.equal(generation, 2);
    assert.equal(lastChange?.outcome, 'Applied');
    assert.deepEqual(lastChange?.fields.toSorted(), [
      'clientConnection.burst',
      'clientConnection.qps',
      'enableProfiling',
      'logging.format',
      'logging.verbosity',
      'nftables.masqueradeAll',
      'nftables.masqueradeBit',
      'oomScoreAdj',
    ]);
    assert.match(rules(), /0x00000008/);
    assert.equal((await fetch('http://127.0.0.1:10249/debug/pprof/')).status, 200);
    assert.match(await (await fetch('http://127.0.0.1:10249/configz')).text(), /"masqueradeBit":3/);
    assert.equal(readFileSync(`/proc/${proxy.pid}/oom_score_adj`, 'utf8').trim(), '77');
    await proxy.logs(/^\{.*"msg":"Configuration changed"/m);
    const { code, stdout } = await run(kubeProxyctl, ['status']);
    assert.equal(code, 0, stdout);
    assert.match(
      stdout,
      /, generation 2, read .*\n {2}the file on disk is the one in use\n {2}last change applied/,
    );
  });

  it('moves its servers, and stays where it is when a new address is taken', async () => {
    await start('nftables');
    const squatter = createServer().listen(10301, '127.0.0.1');
    const isServed = (port: number) =>
      fetch(`http://127.0.0.1:${port}/healthz`).then(
        () => true,
        () => false,
      );
    try {
      await apply({ healthzBindAddress: '127.0.0.1:10256', bindAddressHardFail: true });
      assert.ok(await isServed(10256));
      await apply({ healthzBindAddress: '127.0.0.1:10300', bindAddressHardFail: true });
      assert.deepEqual([await isServed(10300), await isServed(10256)], [true, false]);
      const taken = { healthzBindAddress: '0.0.0.0:10256', metricsBindAddress: '127.0.0.1:10301' };
      node.site.writeConfig({ ...taken, bindAddressHardFail: true, nftables: { masqueradeAll: true } });
      const { generation, onDisk } = await eventuallyConfiguration(
        'the rejection',
        (report) => report.onDisk.state === 'Rejected',
      );
      assert.equal(generation, 3);
      assert.match(onDisk.reason ?? '', /metrics server on 127\.0\.0\.1:10301.*address already in use/);
      assert.deepEqual([await isServed(10300), await isServed(10256)], [true, false]);
    } finally {
      squatter.close();
    }
  });

  it('goes back to the former configuration in both families when the kernel refuses the new one in one', async () => {
    await start('nftables');
    traffic = new Traffic(node);
    const rules = () => command('nft', '-s', 'list', 'table', 'ip', 'kube-proxy');
    const former = rules();
    // While a program owns a table, the kernel lets no other program change it.
    other = spawn('nft', ['-i'], { stdio: ['pipe', 'ignore', 'ignore'] });
    other.stdin?.write('delete table ip6 kube-proxy; add table ip6 kube-proxy { flags owner; }\n');
    await node.eventually('the loss of the table', () =>
      command('nft', 'list', 'table', 'ip6', 'kube-proxy').includes('flags owner'),
    );
    node.site.writeConfig({ nftables: { masqueradeAll: true } });
    const { generation, lastChange, onDisk } = await eventuallyConfiguration(
      'the rejection',
      ({ onDisk }) => onDisk.state === 'Rejected',
    );
    assert.deepEqual([generation, lastChange?.outcome], [1, 'Rejected']);
    assert.deepEqual(lastChange?.fields, ['nftables.masqueradeAll']);
    assert.match(onDisk.reason ?? '', /EPERM|not permitted/);
    assert.equal(rules(), former);
    const events = () => node.site.api.store.list('events').map(({ raw }) => raw);
    await node.eventually('the event', () =>
      events().some(({ reason }) => reason === 'ConfigurationRejected'),
    );
    const { code, stdout } = await run(kubeProxyctl, ['status']);
    assert.equal(code, 2);
    assert.match(stdout, /was rejected, the former configuration is in use/);
    other.kill('SIGKILL');
    assert.equal((await apply({ nftables: { masqueradeBit: 5 } })).generation, 2);
    await traffic.end();
  });

  it('goes back to the former rules when the new ones fail in the sync of one family', async () => {
    const { PATH } = process.env;
    const restore = command('sh', '-c', 'command -v ip6tables-restore').trim();
    mkdirSync(node.site.path('bin'));
    // Stands for a kernel that refuses one rule.
    const refuse = `#!/bin/sh\ninput=$(cat)\ncase "$input" in *0x00000008*) echo refused >&2; exit 1;; esac\n`;
    const script = `${refuse}printf '%s\\n' "$input" | exec ${restore} "$@"\n`;
    writeFileSync(node.site.path('bin/ip6tables-restore'), script, { mode: 0o755 });
    process.env.PATH = `${node.site.path('bin')}:${PATH}`;
    try {
      await start('iptables');
    } finally {
      process.env.PATH = PATH;
    }
    traffic = new Traffic(node);
    const masks = () => new Set(command('iptables-save', '-t', 'nat').match(/0x[0-9a-f]+\/0x[0-9a-f]+/g));
    const former = masks();
    node.site.writeConfig({ mode: 'iptables', iptables: { masqueradeBit: 3 } });
    const { generation, onDisk } = await eventuallyConfiguration(
      'the rejection',
      (report) => report.onDisk.state === 'Rejected',
    );
    assert.equal(generation, 1);
    assert.match(onDisk.reason ?? '', /refused/);
    assert.deepEqual(masks(), former);
    await apply({ mode: 'iptables', iptables: { masqueradeBit: 4 } });
    assert.notDeepEqual(masks(), former);
    await traffic.end();
  });

  it('rejects conntrack parameters that the kernel does not let it set', async () => {
    await start('nftables');
    node.site.writeConfig({ conntrack: { maxPerCore: 1, min: 1 } });
    const { generation, onDisk } = await eventuallyConfiguration(
      'the rejection',
      (report) => report.onDisk.state === 'Rejected',
    );
    assert.equal(generation, 1);
    assert.match(onDisk.reason ?? '', /nf_conntrack_max/);
    assert.ok(await node.stillAnswers('10.96.0.1'));
  });

  it('names the fields that need a restart, and ends', async () => {
    await start('nftables');
    node.site.writeConfig({
      mode: 'iptables',
      hostnameOverride: 'node-b',
      nftables: { masqueradeAll: true },
    });
    assert.equal((await proxy.exited).code, 1);
    assert.match(
      proxy.stderr,
      /"Configuration change needs a restart" fields=\["hostnameOverride","mode"\] reason="hostnameOverride: it decides/,
    );
    assert.match(proxy.stderr, /content of the proxy server's configuration file was updated/);
  });
});
