/** Whatever goes wrong, `kube-proxyctl status`, its exit code, /healthz and the metrics say the same. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiNode, apiService, apiSlice } from '../cluster/objects.ts';
import { ctl } from '../ctl/ctl.ts';
import { seed } from '../seed.ts';
import { sumOfSamples } from './served-pages.ts';
import { SoleNode } from './sole-node.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);

/** Faults that begin or end, one after the other. */
const STEPS = 8;

/** What an operator sees of one moment. */
interface Statements {
  readonly report: StatusReport;
  readonly exitCode: number | null;
  readonly healthz: HealthPage;
  readonly counted: number;
}

interface HealthPage {
  readonly code: number;
  readonly body: {
    readonly healthy: boolean;
    readonly nodeEligible: boolean;
    readonly problems?: readonly string[];
  };
}

interface Fault {
  begin(): void | Promise<void>;
  end(): void | Promise<void>;
  /** What kind of problem appears while it lasts. */
  readonly kind: RegExp;
  /** The proxy learns of it from the API server. */
  readonly isTold?: boolean;
}

describe('statements about the health of the proxy', { skip }, () => {
  let node: SoleNode;
  let relay: Relay;
  const active = new Set<Fault>();

  before(async () => {
    node = await SoleNode.open();
    relay = await Relay.open(new URL(node.site.api.url).port);
    const kubeconfig = node.site.path('kubeconfig');
    writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replace(node.site.api.url, relay.url));
    put('web', 1);
  });
  after(async () => {
    for (const fault of active) await fault.end();
    relay.cut();
    await node.close();
  });

  function put(name: string, n: number, more: object = {}): void {
    const { spec, ...rest } = apiService(name, 80, { clusterIP: `10.96.0.${n}` });
    node.site.api.put('services', { ...rest, spec: { ...(spec as object), ...more } });
    node.site.api.put('endpointSlices', apiSlice(name, [SoleNode.address]));
  }

  function faults(): Fault[] {
    const config = node.site.path('config.yaml');
    const good = readFileSync(config, 'utf8');
    let owner: ChildProcess | undefined;
    let flusher: NodeJS.Timeout | undefined;
    return [
      { kind: /^WatchBroken$/, begin: () => relay.cut(), end: () => relay.mend() },
      {
        kind: /^ConfigFileUnusable$/,
        begin: () => writeFileSync(config, 'mode: [nftables'),
        end: () => writeFileSync(config, good),
      },
      {
        kind: /^ObjectsNotProgrammed$/,
        isTold: true,
        begin: () => put('odd', 2, { loadBalancerSourceRanges: ['bogus'] }),
        end: () => void node.site.api.delete('services', 'shop', 'odd'),
      },
      {
        kind: /^NodeNotEligible$/,
        isTold: true,
        begin: () => {
          const { spec, ...rest } = apiNode('node-a');
          const taints = [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }];
          node.site.api.put('nodes', { ...rest, spec: { ...(spec as object), taints } });
        },
        end: () => node.site.api.put('nodes', apiNode('node-a')),
      },
      {
        // Syncs fail: while a program owns a table, the kernel lets no other program change it.
        kind: /^(SyncFailed|SyncOverdue)$/,
        begin: () => {
          owner = spawn('nft', ['-i'], { stdio: ['pipe', 'ignore', 'ignore'] });
          // The table may be missing at that moment: a former owner took it along.
          const [add, remove] = ['add table ip kube-proxy', 'delete table ip kube-proxy'];
          owner.stdin?.write(`${add}; ${remove}; ${add} { flags owner; }\n`);
        },
        end: async () => {
          owner?.kill('SIGKILL');
          if (owner) await once(owner, 'exit');
        },
      },
      {
        // Another program keeps flushing; the table may be missing or not ours to change at that moment.
        kind: /^(RulesWrong|SyncFailed)$/,
        begin: () => {
          flusher = setInterval(
            () => void node.nft('flush', 'table', 'ip', 'kube-proxy').catch(() => {}),
            100,
          );
        },
        end: () => clearInterval(flusher),
      },
    ];
  }

  test('never contradict each other, whatever faults begin and end', async () => {
    await node.start({ syncPeriod: '1s' });
    await node.eventually('a healthy start', async () => (await look()).report.state === 'healthy');
    const all = faults();
    const [steps = []] = fc.sample(
      fc.array(fc.nat(all.length - 1), { minLength: STEPS, maxLength: STEPS, size: 'max' }),
      { numRuns: 1, seed },
    );
    for (const step of [...steps, ...all.keys()]) {
      const fault = all[step % all.length];
      if (!fault) continue;
      if (active.delete(fault)) {
        await fault.end();
      } else {
        active.add(fault);
        await fault.begin();
        const isNoticed = async () =>
          (await look()).report.problems.some(({ kind }) => fault.kind.test(kind));
        if (!(fault.isTold && relay.isCut)) {
          await node.eventually(`a problem of kind ${fault.kind.source}`, isNoticed);
        }
      }
      await agree();
    }
    for (const fault of active) await fault.end();
    active.clear();
    // An API server that was away for long is asked again after up to a minute.
    const isHealthy = async () => (await look()).report.state === 'healthy';
    await node.eventually('health after all faults', isHealthy, { withinMs: 90_000 });
    await agree();
  });

  /** Checks what must hold for every answer by itself, and waits until answers of different moments agree. */
  async function agree(): Promise<void> {
    await node.eventually('statements that agree', async () => {
      const statements = await look();
      const { report, healthz, counted } = statements;
      const outages = report.problems.filter(({ outage }) => outage);
      const texts = outages.map(({ family, text }) => (family === null ? text : `${family}: ${text}`));
      const isKept = report.problems.some(({ kind }) => kind === 'NodeNotEligible');
      return (
        healthz.body.healthy === report.healthy &&
        healthz.body.nodeEligible === !isKept &&
        (healthz.body.problems ?? []).length === texts.length &&
        counted === report.problems.length
      );
    });
  }

  async function look(): Promise<Statements> {
    const { code: exitCode, stdout, stderr } = await ctl('status', '-o', 'json');
    assert.notEqual(exitCode, 1, stderr);
    const report = JSON.parse(stdout) as StatusReport;
    const statements = {
      report,
      exitCode,
      healthz: await healthPage(),
      counted: await sumOfSamples('kubeproxy_ts_problems{'),
    };
    assertConsistent(statements);
    return statements;
  }
});

/** What each answer must say, whatever happens between two of them. */
function assertConsistent({ report, exitCode, healthz }: Statements): void {
  const { state, healthy, problems, families } = report;
  const outages = problems.filter(({ outage }) => outage);
  assert.equal(exitCode, state === 'healthy' ? 0 : 2);
  assert.equal(state === 'healthy', problems.length === 0);
  assert.equal(state === 'unhealthy', outages.length > 0);
  assert.equal(healthy, state !== 'unhealthy');
  for (const { family, healthy: isFamilyHealthy } of families) {
    const concerns = outages.some((problem) => (problem.family ?? family) === family);
    assert.equal(isFamilyHealthy, !concerns, family);
  }
  const { code, body } = healthz;
  assert.equal(code, body.healthy && body.nodeEligible ? 200 : 503);
  assert.equal(body.healthy, body.problems === undefined);
}

async function healthPage(): Promise<HealthPage> {
  const response = await fetch('http://127.0.0.1:10256/healthz');
  return { code: response.status, body: (await response.json()) as HealthPage['body'] };
}

/** Passes connections on to the API server until it is cut. */
class Relay {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  private constructor(target: number) {
    this.#target = target;
  }

  static async open(target: string): Promise<Relay> {
    const relay = new Relay(Number(target));
    await relay.mend();
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get isCut(): boolean {
    return this.#server?.listening !== true;
  }

  async mend(): Promise<void> {
    this.#server = createServer((socket) => {
      const far = connect(this.#target, '127.0.0.1');
      for (const [from, to] of [
        [socket, far],
        [far, socket],
      ] as const) {
        this.#sockets.add(from);
        from.on('error', () => to.destroy()).on('close', () => to.destroy() && this.#sockets.delete(from));
        from.pipe(to);
      }
    }).listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
  }

  cut(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
