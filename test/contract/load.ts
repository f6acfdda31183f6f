import type { Outcome } from '../cluster/lab/traffic.ts';
import type { Scene } from './scene.ts';
import type { Packet } from './story.ts';

/** Makes new connections, one after the other, while something else happens. */
export class Load {
  readonly #scene: Scene;
  readonly #packets: readonly Packet[];
  readonly #workers: number;
  /** All outcomes other than an answer from A or B. */
  readonly failures: Outcome[] = [];
  connections = 0;
  #isEnough = false;

  /** `workers` is the number of connections at a time. */
  constructor(scene: Scene, packets: readonly Packet[], workers = 8) {
    this.#scene = scene;
    this.#packets = packets;
    this.#workers = workers;
  }

  /** Makes connections while `work` runs, and at least `atLeast` of them. */
  async during(work: () => Promise<void>, atLeast: number): Promise<void> {
    const workers = Array.from({ length: this.#workers }, (_, i) => this.#connect(i, atLeast));
    try {
      await work();
    } finally {
      this.#isEnough = true;
      await Promise.all(workers);
    }
  }

  async #connect(worker: number, atLeast: number): Promise<void> {
    for (let i = worker; !this.#isEnough || this.connections < atLeast; i++) {
      const packet = this.#packets[i % this.#packets.length];
      if (!packet) return;
      this.connections++;
      const outcome = await this.#scene.outcome(packet);
      if (outcome.kind !== 'answered' || !['A', 'B'].includes(outcome.by)) this.failures.push(outcome);
    }
  }
}
