/**
 * `npm start`: shows the proxy without a cluster. Starts tiny web servers for the endpoints in examples/shop and the
 * real program on the manifests there, sends requests to the service addresses and shows which endpoints answer. While
 * it runs, edit the manifests and watch the traffic move. Ctrl-C removes everything.
 * `npm start -- PATH` does the same with the manifests at PATH.
 */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pods } from './demo/pods.ts';
import { RunningProxy, type Substitute } from './demo/proxy.ts';
import { ask, askRepeatedly } from './demo/requests.ts';
import { type Frontend, Shop } from './demo/shop.ts';
import { openStage, type Stage } from './demo/stage.ts';

const exampleShop = resolve(import.meta.dirname, '../examples/shop');
const roundMs = 2_000;
const startAttempts = 100;
const attemptMs = 100;

async function main(path = exampleShop): Promise<void> {
  const parent = process.ppid;
  const manifests = resolve(path);
  const shop = await Shop.open(manifests);
  const stage = openStage(manifests);
  console.log(
    `kube-proxy runs in ${stage.description}.\nWhile it runs, edit the manifests in ${manifests}. Ctrl-C ends it.\n`,
  );
  const pods = new Pods();
  await pods.startAll(shop.endpoints());
  const proxy = new RunningProxy([`--manifests=${manifests}`, ...stage.flags]);
  const end = endTogether(proxy);
  await firstAnswer(shop.frontends(stage.nodeIP), stage, proxy);
  // The parent may end without a signal to this process; then nobody reads the output.
  while (process.ppid === parent) {
    for (const frontend of shop.frontends(stage.nodeIP)) await show(frontend, stage, proxy);
    console.log('');
    await sleep(roundMs);
    await shop.refresh();
    await pods.startAll(shop.endpoints());
  }
  await end();
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

/** Waits up to ten seconds until the proxy serves something; the output then shows what is wrong. */
async function firstAnswer(frontends: readonly Frontend[], stage: Stage, proxy: RunningProxy): Promise<void> {
  for (let i = 0; i < startAttempts; i++) {
    for (const frontend of frontends) {
      const { address } = placeOf(frontend, stage, proxy);
      const isServed = address !== undefined && (await ask(address).then(Boolean, () => false));
      if (isServed) return;
    }
    await sleep(attemptMs);
  }
}

async function show(frontend: Frontend, stage: Stage, proxy: RunningProxy): Promise<void> {
  const { address, note } = placeOf(frontend, stage, proxy);
  const answers = address === undefined ? note : await askRepeatedly(address);
  console.log(`${frontend.title.padEnd(18)} ${(address ?? frontend.address).padEnd(16)} ${answers}`);
}

/** The address to ask for a frontend: its own, unless the proxy logged a substitute or that it is not served. */
function placeOf({ name, address }: Frontend, { hasOwnNetwork }: Stage, proxy: RunningProxy): Substitute {
  return proxy.substitute(name) ?? { address: hasOwnNetwork ? address : undefined, note: 'not served yet' };
}

await main(process.argv[2]).catch((error: Error) => {
  console.error(`npm start: ${error.message}`);
  process.exit(1);
});
