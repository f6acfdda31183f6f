/**
 * The part of `npm run test:cluster` that runs in namespaces of its own (outside.ts starts it): builds the cluster,
 * deploys kube-proxy, runs the batches. Everything it starts ends with it.
 */
import { cpSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../../src/lib/thrown.ts';
import { describeRun } from './about.ts';
import { type Arguments, memory } from './arguments.ts';
import { batches } from './batches.ts';
import { buildCluster } from './build-cluster.ts';
import type { Folders } from './folders.ts';
import { measureMemory, renderMemory } from './memory.ts';
import type { Deployment } from './proxy.ts';
import { type Column, readReport, renderTable, succeeded } from './report.ts';
import { type ScenarioName, scenarioNames } from './scenarios/names.ts';
import { isSuccess, type Played, play, renderScenarios, summaryOf } from './scenarios/play.ts';
import type { Stage } from './scenarios/scenario.ts';
import { runSuite } from './suite.ts';

/** What the outer process found out. */
export interface Order {
  readonly options: Arguments;
  readonly folders: Folders;
  /** Archives for the nodes. */
  readonly images: readonly string[];
  /** The commit of our image. */
  readonly commit: string;
  readonly pauseImage: string;
  readonly agnhostImage: string;
  readonly cgroup: string;
}

/** Runs batches and scenarios in a cluster, and writes their results. */
class Lane {
  readonly #order: Order;
  readonly #stage: Stage;
  readonly #deployment: Deployment;
  /** For results. */
  readonly #directory: string;

  constructor(order: Order, stage: Stage) {
    const { proxy, mode } = order.options;
    this.#order = order;
    this.#stage = stage;
    this.#deployment = { which: proxy, mode };
    this.#directory = resultsOf(order);
    mkdirSync(this.#directory, { recursive: true });
  }

  /** Returns whether everything passed. */
  async run(): Promise<boolean> {
    const { proxy, kubectl, machines } = this.#stage;
    await proxy.deploy(this.#deployment);
    if (machines[0]) this.#print('about', await describeRun(this.#order.commit, kubectl, machines[0]));
    const { batches: names } = this.#order.options;
    const scenarios = names.filter(isScenario);
    let passed = true;
    for (const name of names.filter((each) => each in batches))
      passed = (await this.#runBatch(name)) && passed;
    if (names.includes(memory))
      this.#print(memory, renderMemory(await measureMemory(this.#stage), this.#deployment.mode));
    if (scenarios.length > 0) passed = (await this.#playAll(scenarios)) && passed;
    await proxy.save(this.#directory);
    return passed;
  }

  async #runBatch(name: string): Promise<boolean> {
    const whole = batches[name];
    if (!whole) throw new Error(`there is no batch ${name}`);
    const { options, folders } = this.#order;
    const { focus } = options;
    const batch = focus === undefined ? whole : { ...whole, focus };
    // The results of the whole batch stay.
    const title = focus === undefined ? name : `${name}-focus`;
    const { proxy, pki } = this.#stage;
    const configuration = batch.configuration?.[options.mode];
    if (configuration) await proxy.deploy({ ...this.#deployment, configuration });
    const processes = batch.isSerial ? 1 : options.processes;
    say(`batch ${name}, ${processes} at a time; output in ${this.#directory}/${title}.log`);
    const kubeconfig = pki.path('tests.kubeconfig');
    const results = await runSuite({
      ...{ name: title, batch, processes, kubeconfig },
      directory: this.#directory,
      bin: folders.bin,
    });
    if (configuration) await proxy.deploy(this.#deployment);
    this.#print(title, renderTable(columnsOf(folders.results, title)));
    return succeeded(results);
  }

  async #playAll(names: readonly ScenarioName[]): Promise<boolean> {
    const played: Played[] = [];
    await this.#stage.web.create();
    for (const name of names) {
      say(`scenario ${name}`);
      const outcome = await play(name, this.#stage);
      say(summaryOf(outcome));
      played.push(outcome);
    }
    this.#print('scenarios', renderScenarios(played, basename(this.#directory)));
    return played.every(isSuccess);
  }

  #print(name: string, text: string): void {
    writeFileSync(join(this.#directory, `${name}.md`), `${text}\n`);
    console.log(`\n${text}\n`);
  }
}

/** The results of this batch in all modes and with both proxies, as far as they were run. */
function columnsOf(results: string, name: string): Column[] {
  return globSync(`*/${name}.json`, { cwd: results }).map((file) => {
    const path = join(results, file);
    const day = statSync(path).mtime.toISOString().slice(0, 10);
    return { title: `${basename(dirname(path))} (${day})`, results: readReport(readFileSync(path, 'utf8')) };
  });
}

function resultsOf({ folders, options }: Order): string {
  return join(folders.results, `${options.proxy}-${options.mode}`);
}

/** The state of the nodes is removed at the end, but their logs may explain a result. */
function keepLogs(order: Order): void {
  for (const file of globSync('*/*.log', { cwd: order.folders.state }))
    cpSync(join(order.folders.state, file), join(resultsOf(order), 'logs', file));
}

function isScenario(name: string): name is ScenarioName {
  return scenarioNames.some((each) => each === name);
}

function say(text: string): void {
  console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

async function main(order: Order): Promise<number> {
  try {
    const lane = new Lane(order, await buildCluster(order, say));
    return (await lane.run()) ? 0 : 1;
  } catch (error) {
    console.error(`cluster: ${messageOf(error)}`);
    return 2;
  } finally {
    keepLogs(order);
  }
}

const order = JSON.parse(process.argv[2] ?? '') as Order;
const status = await main(order);
if (order.options.keep) {
  console.log(`The cluster runs until Ctrl-C. From a second terminal, as root:
  nsenter --target $(pgrep --full --newest real-cluster/inside.ts) --mount --net --pid \\
    ${order.folders.bin}/kubectl --kubeconfig ${order.folders.state}/pki/admin.kubeconfig get pods -A -o wide`);
  await new Promise(() => setInterval(() => undefined, 1 << 30));
}
// As the first process of its process namespace it takes everything that it started with it.
process.exit(status);
