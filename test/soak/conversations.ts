import type { OpenConversation } from '../cluster/lab/host.ts';
import { paced } from '../cluster/lab/pace.ts';
import type { Ledger } from './ledger.ts';
import type { Model } from './model/model.ts';
import { packetText, type SoakPacket } from './model/packet.ts';
import { unserved } from './model/promise.ts';
import { patience } from './model/tolerances.ts';
import type { Traffic } from './traffic.ts';

interface Open {
  readonly packet: SoakPacket;
  readonly conversation: OpenConversation;
  readonly by: string;
  readonly since: number;
}

const MOST = 8;
/** Attempts to find a packet that is answered now. */
const ATTEMPTS = 20;

/** TCP connections that stay open. The endpoint that answered first must answer as long as they are open. */
export class Conversations {
  readonly #traffic: Traffic;
  readonly #model: Model;
  readonly #ledger: Ledger;
  #open: Open[] = [];

  constructor(traffic: Traffic, model: Model, ledger: Ledger) {
    this.#traffic = traffic;
    this.#model = model;
    this.#ledger = ledger;
  }

  /** Opens one more where an answer is certain, and closes the oldest when there are many. */
  async openOne(): Promise<void> {
    for (let i = 0; i < ATTEMPTS; i++) {
      const packet = { ...this.#traffic.randomPacket(), transport: 'tcp' as const };
      const now = performance.now();
      const promises = [...this.#model.promises(packet, now, now)];
      if (promises.some((seen) => unserved.includes(seen))) continue;
      const route = this.#traffic.route(packet);
      if (!route) continue;
      const conversation = await route.host.open(route.question).catch(() => undefined);
      const answer = await conversation?.ask(paced(patience.answerMs));
      if (!conversation || !answer) {
        this.#ledger.fail(`${packetText(packet)} could not be opened`, now, performance.now());
        return;
      }
      this.#ledger.conversations.opened++;
      this.#open.push({ packet, conversation, by: answer.by, since: now });
      break;
    }
    if (this.#open.length > MOST) await this.#open.shift()?.conversation.close();
  }

  /** Asks on every open connection. */
  async check(): Promise<void> {
    await Promise.all(this.#open.map((open) => this.#checkOne(open)));
  }

  /** Closes all of them, since the next operation may break them. */
  async closeAll(): Promise<void> {
    const open = this.#open;
    this.#open = [];
    for (const { conversation } of open) await conversation.close();
  }

  /** Closes those of one service. */
  async closeService(n: number): Promise<void> {
    const open = this.#open.filter(({ packet }) => packet.n === n);
    this.#open = this.#open.filter((each) => !open.includes(each));
    for (const { conversation } of open) await conversation.close();
  }

  async #checkOne({ packet, conversation, by, since }: Open): Promise<void> {
    this.#ledger.conversations.asked++;
    const answer = await conversation.ask(paced(patience.answerMs));
    if (answer?.by === by) return;
    const what = `the open connection ${packetText(packet)} was answered by ${by}, and now by ${answer?.by ?? 'nobody'}`;
    this.#ledger.fail(what, since, performance.now());
    this.#open = this.#open.filter((each) => each.conversation !== conversation);
  }
}
