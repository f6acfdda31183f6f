import { quote } from '../../lib/go-quote.ts';
import { failureText } from './failure.ts';
import type { StartKubectl } from './kubectl.ts';

/** Where the pods of kube-proxy are, and the node whose proxy is asked. */
export interface PodPlace {
  readonly node: string;
  readonly namespace: string;
  readonly selector: string;
}

/** The part of a Pod that is needed here. */
interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: { readonly phase?: string };
}

/** The name of the pod of kube-proxy on a node. Rejects unless there is exactly one that runs. */
export async function findProxyPod(start: StartKubectl, place: PodPlace, timeoutMs: number): Promise<string> {
  const ofNode = ['--field-selector', `spec.nodeName=${place.node}`];
  return soleRunning(await getPods(start, place, ofNode, timeoutMs), place);
}

/** The names of the nodes that have a pod of kube-proxy. */
export async function nodesWithProxy(
  start: StartKubectl,
  place: Omit<PodPlace, 'node'>,
  timeoutMs: number,
): Promise<string[]> {
  const pods = await getPods(start, place, [], timeoutMs);
  return pods.flatMap(({ spec }) => spec?.nodeName ?? []);
}

async function getPods(
  start: StartKubectl,
  { namespace, selector }: Omit<PodPlace, 'node'>,
  limits: readonly string[],
  timeoutMs: number,
): Promise<readonly Pod[]> {
  const running = start(['get', 'pods', '-n', namespace, '-l', selector, ...limits, '-o', 'json']);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    running.kill();
  }, timeoutMs);
  const end = await running.ended.finally(() => clearTimeout(timer));
  if (timedOut) throw new Error(`kubectl get pods: no answer within ${timeoutMs / 1000} s`);
  if (!end.isSuccess) throw new Error(failureText('get pods', end));
  return (JSON.parse(end.stdout) as { items: readonly Pod[] }).items;
}

function soleRunning(pods: readonly Pod[], { node, namespace, selector }: PodPlace): string {
  const where = `on node ${quote(node)} (namespace ${namespace}, selector ${selector})`;
  if (pods.length === 0) throw new Error(`there is no pod of kube-proxy ${where}`);
  // During a rollout the pod that goes and the one that comes may both be there.
  const running = pods.filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running',
  );
  const [first, second] = running;
  if (first && !second) return first.metadata.name;
  if (first) {
    const names = running.map(({ metadata }) => metadata.name).join(', ');
    throw new Error(`several pods match ${where}: ${names}; --proxy-selector can select one`);
  }
  const states = pods.map(({ metadata, status }) => {
    const state = metadata.deletionTimestamp === undefined ? (status?.phase ?? 'Unknown') : 'Terminating';
    return `${metadata.name} is ${state}`;
  });
  throw new Error(`no pod of kube-proxy runs ${where}: ${states.join(', ')}`);
}
