/** kube-proxyctl -N with the commands that go on: flows -w, top and ui of another node, through kubectl. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { API_PATH, type StatusReport } from '../../src/inspect/api.ts';
import type { FlowEvent } from '../../src/inspect/traffic-api.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { Site } from '../program/started.ts';
import { eventuallyReported, printed } from './ctl.ts';
import { FakeKubectl } from './fake-cluster.ts';
import { RunningCtl } from './running-ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const endpoint = '10.244.0.5';

/** A connection through the Service, which the endpoint ends. */
async function callWeb(): Promise<void> {
  const socket = connect(80, '10.96.0.1').on('error', () => {});
  await once(socket.resume(), 'close', { signal: AbortSignal.timeout(paced(10_000)) });
}

describe('traffic of another node', { skip: skip ?? false }, () => {
  const kubectl = new FakeKubectl();
  let site: Site;
  let pod: Server;
  let running: RunningCtl | undefined;

  before(async () => {
    for (const ip of ['192.0.2.1', endpoint]) sh('ip', 'addr', 'replace', `${ip}/32`, 'dev', 'lo');
    sh('ip', 'route', 'replace', '10.96.0.0/16', 'dev', 'lo', 'src', '192.0.2.1');
    pod = createServer((socket) => socket.on('error', () => {}).end('hello'));
    await once(pod.listen(8080, endpoint), 'listening');
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', [endpoint]));
    await site.start(site.writeConfig({ metricsBindAddress: '127.0.0.1:10249' }));
    await eventuallyReported('the first sync', async () =>
      (JSON.parse(await printed('status -o json')) as StatusReport).families.every(({ syncs }) => syncs > 0),
    );
  });
  afterEach(async () => {
    await running?.interrupt();
    running = undefined;
    kubectl.endAll();
  });
  after(async () => {
    pod.close();
    await site.close();
    kubectl.close();
  });

  function start(...args: readonly string[]): RunningCtl {
    running = new RunningCtl(['-N', 'node-a', ...args], kubectl.env);
    return running;
  }

  /** Interrupts the command as Ctrl-C does. Nothing that it started goes on. */
  async function interrupt(command: RunningCtl): Promise<void> {
    await eventually('one kubectl runs while the command does', () => kubectl.running().length === 1);
    assert.equal(await command.interrupt(), 'SIGINT');
    await eventually('the end of kubectl', () => kubectl.running().length === 0);
  }

  it('flows -w shows events as they happen, also after the forward broke, until it is interrupted', async () => {
    const flows = start('flows', '-w', '-o', 'json', '--interval', '20ms');
    const opened = () =>
      flows
        .lines()
        .map((line) => JSON.parse(line) as FlowEvent)
        .filter(({ event, flow }) => event === 'Opened' && flow?.endpoint === `${endpoint}:8080`).length;
    const follows = async () => {
      const before = opened();
      await callWeb();
      await eventually('another opening is shown', () => opened() > before, { withinMs: 2_000 });
      return true;
    };
    await eventually('openings are shown', follows);
    kubectl.endAll();
    await eventually('the break is told', () => /ended: .*; trying again\n/.test(flows.stderr));
    await eventually('the proxy answers again', () => flows.stderr.includes('The proxy answers again.'));
    await eventually('openings are shown again', follows);
    await interrupt(flows);
  });

  it('top counts again and again, also after the forward broke, until it is interrupted', async () => {
    const top = start('top', 'shop/web', '-o', 'name', '--count', '1000000', '--interval', '20ms');
    const goesOn = async () => {
      const before = top.lines().length;
      await eventually('another reading', () => top.lines().length > before + 1);
      return true;
    };
    await goesOn();
    assert.equal(top.lines()[0], `${endpoint}:8080`);
    kubectl.endAll();
    await goesOn();
    await interrupt(top);
  });

  it('ui shows the node, also after the forward broke, until it is interrupted', async () => {
    const ui = start('ui');
    await eventually('the address', () => ui.lines().length > 0);
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+\//.exec(ui.stdout) ?? [];
    const get = async (path: string) => {
      const response = await fetch(new URL(path, url));
      return { status: response.status, text: await response.text() };
    };
    const nodeName = async () => {
      const { status, text } = await get(`${API_PATH}status`);
      return status === 200 ? (JSON.parse(text) as StatusReport).nodeName : text;
    };
    assert.match((await get('/')).text, /content="kube-proxyctl --on-node=node-a"/);
    assert.equal(await nodeName(), 'node-a');
    kubectl.endAll();
    await eventually('the page has answers again', async () => (await nodeName()) === 'node-a');
    await interrupt(ui);
    await assert.rejects(fetch(url));
  });
});
