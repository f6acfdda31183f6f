/**
 * `npm start`: shows the proxy without a cluster. Starts stand-ins for the endpoints in examples/shop and the real
 * program on the manifests there, sends requests to the service addresses and shows which endpoints answer. While it
 * runs, edit the manifests and watch the traffic move. Ctrl-C removes everything.
 * `npm start -- PATH` does the same with the manifests at PATH; `npm start -- --help` shows more.
 */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_PATH, type StatusReport } from '../src/inspect/api.ts';
import { showAnswers } from './demo/answers.ts';
import { helpText, readArguments } from './demo/arguments.ts';
import { servePage } from './demo/page.ts';
import { Pods } from './demo/pods.ts';
import { RunningProxy } from './demo/proxy.ts';
import { textAt } from './demo/requests.ts';
import { Shop } from './demo/shop.ts';
import { openStage, type Stage } from './demo/stage.ts';

const exampleShop = resolve(import.meta.dirname, '../examples/shop');
const roundMs = 2_000;
const startMs = 30_000;
const attemptMs = 100;
/** More addresses are not listed in a message. */
const maxListed = 5;

async function main(): Promise<void> {
  const parent = process.ppid;
  const args = readArguments(process.argv.slice(2), exampleShop);
  if (args.help) {
    console.log(helpText);
    return;
  }
  const { manifests } = args;
  const shop = await Shop.open(manifests, args.node);
  const stage = await openStage(args, shop.node());
  const page = await servePage(stage, parent).then(
    (url) => `Its page for a browser: ${url}`,
    (error: Error) => `It has no page for a browser: ${error.message}.`,
  );
  console.log(introduction(manifests, stage, shop, page));
  const pods = new Pods(stage);
  await pods.startAll(shop.endpoints());
  const proxy = new RunningProxy([`--manifests=${manifests}`, ...stage.flags]);
  const end = endTogether(proxy);
  await firstSync(stage.metrics);
  // The parent may end without a signal to this process; then nobody reads the output.
  while (process.ppid === parent) {
    await showAnswers(shop, stage, proxy);
    await sleep(roundMs);
    await shop.refresh();
    await pods.startAll(shop.endpoints());
  }
  await end();
}

function introduction(manifests: string, stage: Stage, shop: Shop, page: string): string {
  const lines = [
    `kube-proxy runs in ${stage.description}.`,
    `Its node is ${shop.node().name}. While it runs, edit the manifests in ${manifests}. Ctrl-C ends it.`,
    page,
    'To ask it from a second terminal:',
    `  ${stage.ctl} status`,
  ];
  const without = [...new Set(shop.endpoints().map(({ ip }) => ip))].filter((ip) => !stage.canHold(ip));
  if (without.length > 0) lines.push(...limits(without, stage, manifests));
  return `${lines.join('\n')}\n`;
}

/** What the demonstration cannot do with endpoints at these addresses. */
function limits(addresses: readonly string[], { hasOwnNetwork }: Stage, manifests: string): string[] {
  const more = addresses.length - maxListed;
  const listed = addresses.slice(0, maxListed).join(', ') + (more > 0 ? ` and ${more} more` : '');
  if (hasOwnNetwork) return [`Endpoints at ${listed} have no stand-in: this kernel has no IPv6.`];
  const isRoot = process.getuid?.() === 0;
  const lack = isRoot ? 'a network namespace of its own' : 'root';
  return [
    `Endpoints at ${listed} have no stand-in: without ${lack}, only loopback addresses (127.0.0.0/8) can have one.`,
    'The proxy listens for their Services too, but nothing is sent to them here: real servers may have these addresses.',
    ...(isRoot ? [] : [`As root, every endpoint gets one: sudo npm start -- ${manifests}`]),
  ];
}

/** Ends this process with the proxy, and the proxy with this process. Returns a function that ends both. */
function endTogether(proxy: RunningProxy): () => Promise<void> {
  let isEnding = false;
  void proxy.ended.then((how) => {
    // On Ctrl-C or a closed terminal the proxy gets the signal too, perhaps before this process.
    if (isEnding || how === 'SIGINT' || how === 'SIGHUP') process.exit(0);
    console.error(`kube-proxy ended by itself (${how})`);
    process.exit(1);
  });
  const end = async () => {
    isEnding = true;
    await proxy.stop();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  // Errors mean that nobody reads the output any more, as in `npm start | head`.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', end);
  return end;
}

/** Waits until the proxy has written the rules of every family; after half a minute the output shows what is wrong. */
async function firstSync(metrics: string): Promise<void> {
  const until = performance.now() + startMs;
  while (performance.now() < until && !(await hasSynced(metrics))) await sleep(attemptMs);
}

async function hasSynced(metrics: string): Promise<boolean> {
  try {
    const { families } = JSON.parse(await textAt(`http://${metrics}${API_PATH}status`)) as StatusReport;
    return families.every(({ syncs, failures }) => syncs + failures > 0);
  } catch {
    // It does not listen yet, or has not listed the objects yet.
    return false;
  }
}

await main().catch((error: Error) => {
  console.error(`npm start: ${error.message}`);
  process.exit(1);
});
