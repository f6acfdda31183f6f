/**
 * The part of `npm run test:cluster` that runs in namespaces of its own (outside.ts starts it): builds the cluster,
 * deploys kube-proxy, runs the batches. Everything it starts ends with it.
 */
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../../src/lib/thrown.ts';
import { run } from '../cluster/lab/namespace.ts';
import { dnsService, nodes } from './addresses.ts';
import type { Arguments } from './arguments.ts';
import { batches } from './batches.ts';
import { ControlPlane } from './control-plane.ts';
import type { Folders } from './folders.ts';
import { corednsImage } from './images/test-images.ts';
import { Kubectl } from './kubectl.ts';
import { WebService } from './load.ts';
import { LoadBalancer } from './load-balancer.ts';
import { Machine } from './machine.ts';
import { buildControlPlaneNetwork } from './network.ts';
import { Pki } from './pki.ts';
import { DeployedProxy } from './proxy.ts';
import { type Column, readReport, renderTable, succeeded } from './report.ts';
import { type ScenarioName, scenarioNames } from './scenarios/names.ts';
import { type Played, play, renderScenarios } from './scenarios/play.ts';
import type { Stage } from './scenarios/scenario.ts';
import { runSuite } from './suite.ts';

/** What the outer process found out. */
export interface Order {
  readonly options: Arguments;
  readonly folders: Folders;
  readonly images: readonly string[];
  readonly pauseImage: string;
  readonly agnhostImage: string;
  readonly cgroup: string;
}

async function main(order: Order): Promise<boolean> {
  const { options } = order;
  const title = `${options.proxy}-${options.mode}`;
  const stage = await buildCluster(order);
  const results = join(order.folders.results, title);
  const played: Played[] = [];
  let passed = true;
  try {
    await stage.proxy.deploy({ which: options.proxy, mode: options.mode });
    say(`kube-proxy (${options.proxy}) runs on all nodes in ${options.mode} mode`);
    for (const name of options.batches) {
      if (isScenario(name)) {
        const outcome = await playOne(name, stage);
        played.push(outcome);
        passed &&= outcome.load === undefined || outcome.load.failures.length === 0;
      } else passed = (await runBatch(name, order, stage, results)) && passed;
    }
    await stage.proxy.save(results);
  } finally {
    if (played.length > 0) {
      const text = renderScenarios(played, title);
      mkdirSync(results, { recursive: true });
      writeFileSync(join(results, 'scenarios.md'), `${text}\n`);
      console.log(`\n${text}`);
    }
  }
  return passed;
}

async function buildCluster(order: Order): Promise<Stage> {
  const { folders, options } = order;
  run('mount', '-t', 'tmpfs', 'tmpfs', '/run');
  buildControlPlaneNetwork();
  const pki = new Pki(join(folders.state, 'pki'));
  pki.forgetAuthority();
  const kubectl = new Kubectl(pki.path('admin.kubeconfig'), folders.state);
  const controlPlane = new ControlPlane(join(folders.state, 'control-plane'), pki, kubectl);
  say('starting etcd and the control plane');
  await controlPlane.start();
  say(`starting ${nodes.length} nodes`);
  const machines = nodes.map((node) => new Machine(node, { ...order, pki, kubectl }));
  await Promise.all(machines.map((machine) => machine.start()));
  await kubectl.run('wait', '--for=condition=Ready', 'node', '--all', '--timeout=180s');
  const coredns = readFileSync(join(import.meta.dirname, 'coredns.yaml'), 'utf8');
  await kubectl.apply('coredns', coredns.replace('IMAGE', corednsImage).replace('ADDRESS', dnsService));
  new LoadBalancer(pki, join(folders.state, 'control-plane/load-balancer.log')).start();
  const proxy = new DeployedProxy(kubectl, machines, join(folders.state, 'deploy'));
  const web = new WebService(kubectl, machines, order.agnhostImage);
  return { mode: options.mode, kubectl, controlPlane, machines, proxy, web, pki };
}

/** Returns whether no test failed. */
async function runBatch(name: string, order: Order, stage: Stage, directory: string): Promise<boolean> {
  const batch = batches[name];
  if (!batch) throw new Error(`there is no batch ${name}`);
  const { options, folders } = order;
  const deployment = { which: options.proxy, mode: options.mode };
  const configuration = batch.configuration?.[options.mode];
  if (configuration) await stage.proxy.deploy({ ...deployment, configuration });
  say(
    `batch ${name}, ${batch.isSerial ? 1 : options.processes} at a time; output in ${directory}/${name}.log`,
  );
  const kubeconfig = stage.pki.path('tests.kubeconfig');
  const suite = { name, batch, directory, kubeconfig, bin: folders.bin, processes: options.processes };
  const results = await runSuite(suite);
  if (configuration) await stage.proxy.deploy(deployment);
  const table = renderTable(columnsOf(folders.results, name));
  writeFileSync(join(directory, `${name}.md`), `${table}\n`);
  console.log(`\n${table}\n`);
  return succeeded(results);
}

/** The results of this batch in all modes and with both proxies, as far as they were run. */
function columnsOf(results: string, name: string): Column[] {
  return globSync(`*/${name}.json`, { cwd: results }).map((file) => {
    const path = join(results, file);
    const day = statSync(path).mtime.toISOString().slice(0, 10);
    return { title: `${basename(dirname(path))} (${day})`, results: readReport(readFileSync(path, 'utf8')) };
  });
}

async function playOne(name: ScenarioName, stage: Stage): Promise<Played> {
  await stage.web.create();
  say(`scenario ${name}`);
  const outcome = await play(name, stage);
  const { load, obstacle } = outcome;
  say(
    load
      ? `${name}: ${load.failures.length} of ${load.connections} connections failed`
      : `${name}: ${obstacle}`,
  );
  return outcome;
}

function isScenario(name: string): name is ScenarioName {
  return scenarioNames.some((each) => each === name);
}

function say(text: string): void {
  console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

const order = JSON.parse(process.argv[2] ?? '') as Order;
try {
  process.exitCode = (await main(order)) ? 0 : 1;
} catch (error) {
  console.error(`cluster: ${messageOf(error)}`);
  process.exitCode = 2;
}
if (order.options.keep) {
  console.log(`The cluster runs until Ctrl-C. From a second terminal, as root:
  nsenter --target $(pgrep --full --oldest real-cluster/inside.ts) --mount --net --pid \\
    ${order.folders.bin}/kubectl --kubeconfig ${order.folders.state}/pki/admin.kubeconfig get pods -A -o wide`);
  await new Promise(() => setInterval(() => undefined, 1 << 30));
}
// As the first process of its process namespace it takes everything that it started with it.
process.exit();
