import { systemClock } from '../../lib/clock.ts';
import { sleep } from '../../lib/sleep.ts';
import type { CtlOptions } from '../flags.ts';
import { type Patience, patienceOf } from '../patience.ts';
import { NoAnswerError, serverSource } from '../server-source.ts';
import { pagesOf, type ReportSource } from '../source.ts';
import type { Environment } from '../terminal.ts';
import { breakText } from './failure.ts';
import { type Forward, openForward } from './forward.ts';
import { kubectlStarter, type StartKubectl } from './kubectl.ts';
import { findProxyPod, nodesWithProxy } from './proxy-pod.ts';

/** How long kubectl may take to say why a connection broke. */
const LAST_WORDS_MS = 500;

/** Asks the proxy of a node through `kubectl port-forward`. `close` ends kubectl. */
export function nodeSource(
  options: CtlOptions,
  env: Environment,
  patience = patienceOf(options),
): ReportSource {
  const way = new WayToNode(kubectlStarter(globalFlags(options), env), options, patience);
  return {
    status: () => way.ask((source) => source.status()),
    services: (selector) => way.ask((source) => source.services(selector)),
    endpoints: (selector) => way.ask((source) => source.endpoints(selector)),
    explain: (packet) => way.ask((source) => source.explain(packet)),
    diff: () => way.ask((source) => source.diff()),
    traffic: (question) => way.ask((source) => source.traffic(question)),
    affinity: (question) => way.ask((source) => source.affinity(question)),
    flows: (question) => way.ask((source) => source.flows(question)),
    watchFlows: (question) => way.ask((source) => source.watchFlows(question)),
    journal: (question) => way.ask((source) => source.journal(question)),
    pages: {
      onNode: options.onNode,
      ask: (path) => way.ask(async (source) => pagesOf(source).ask(path)),
      page: (path) => way.ask(async (source) => pagesOf(source).page(path)),
    },
    close: () => way.close(),
  };
}

/** The nodes that -N can name. Rejects when kubectl cannot list the pods. */
export function proxyNodes(options: CtlOptions, env: Environment, timeoutMs: number): Promise<string[]> {
  const { proxyNamespace: namespace, proxySelector: selector } = options;
  return nodesWithProxy(kubectlStarter(globalFlags(options), env), { namespace, selector }, timeoutMs);
}

/** The flags of kubectl that are passed on. */
function globalFlags({ kubeconfig, context, as }: CtlOptions): string[] {
  return Object.entries({ kubeconfig, context, as }).flatMap(([name, value]) =>
    value === '' ? [] : [`--${name}=${value}`],
  );
}

/** A forwarded port to the proxy of a node. It is opened with the first question, and again after it broke. */
class WayToNode {
  readonly #start: StartKubectl;
  readonly #options: CtlOptions;
  readonly #patience: Patience;
  #forward: Promise<Forward> | undefined;

  constructor(start: StartKubectl, options: CtlOptions, patience: Patience) {
    this.#start = start;
    this.#options = options;
    this.#patience = patience;
  }

  async ask<T>(question: (source: ReportSource) => Promise<T>): Promise<T> {
    this.#forward ??= this.#open();
    const forward = await this.#forward;
    try {
      return await question(serverSource(`http://127.0.0.1:${forward.port}`, this.#patience));
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      await Promise.race([forward.ended, sleep(systemClock, LAST_WORDS_MS)]);
      const { onNode, proxyPort } = this.#options;
      const reason = breakText(await forward.end(), proxyPort) ?? error.reason;
      throw new Error(`cannot ask kube-proxy on node ${onNode}: ${reason}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    const forward = await this.#forward?.catch(() => undefined);
    this.#forward = undefined;
    await forward?.end();
  }

  /** Rejects when there is no way. The next question then looks for the pod again: it may have been replaced. */
  #open(): Promise<Forward> {
    const opened = this.#forwardToPod();
    const forget = () => {
      if (this.#forward === opened) this.#forward = undefined;
    };
    opened.then(({ ended }) => ended.then(forget, forget), forget);
    return opened;
  }

  async #forwardToPod(): Promise<Forward> {
    const {
      onNode: node,
      proxyNamespace: namespace,
      proxySelector: selector,
      proxyPort: port,
    } = this.#options;
    const pod = await findProxyPod(this.#start, { node, namespace, selector }, this.#patience.answerMs);
    return openForward(this.#start, { namespace, pod, port }, this.#patience.answerMs);
  }
}
