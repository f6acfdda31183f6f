import assert from 'node:assert/strict';
import { type Ask, Host } from '../cluster/lab/host.ts';
import { Lab } from '../cluster/lab/lab.ts';
import type { Outcome } from '../cluster/lab/traffic.ts';
import type { EndpointParts } from '../cluster/objects.ts';

/** The endpoints of the stories: A on this node, B on another. */
export const A: EndpointParts = { ip: '10.244.1.21', local: true };
export const B: EndpointParts = { ip: '10.244.2.21' };
export const A6: EndpointParts = { ip: 'fd00:244:1::21', local: true };
export const B6: EndpointParts = { ip: 'fd00:244:2::21' };

/** Source addresses of the node itself. */
const nodeAddresses = ['192.0.2.10', '2001:db8:0:1::10', '198.51.100.10', '2001:db8:0:2::10'];

/** A question to the node's own addresses or to a service; `from` is the source address. */
export type Story = Ask & { readonly from?: string };

/** The servers that answered, with the source that each saw; MASQ is any address of the node. */
export type Answers = Readonly<Record<string, string>>;

/** With this many draws, chance misses one of two endpoints only once in eight million runs. */
const draws = 24;

/** The node (our namespace), a pod client and endpoint A on it, endpoint B and a client pod elsewhere, and the world. */
export class Scene {
  readonly #lab: Lab;
  readonly #node: Host;

  static async build(namespace: string): Promise<Scene> {
    const lab = Lab.build(namespace, {
      nodeAddresses,
      defaultRoute: 'outside',
      hosts: [
        { name: 'pod', addresses: ['10.244.1.5', 'fd00:244:1::5'], device: 'podveth0' },
        { name: 'A', addresses: ['10.244.1.21', 'fd00:244:1::21'], device: 'podveth1' },
        { name: 'B', addresses: ['10.244.2.21', 'fd00:244:2::21'] },
        { name: 'remote', addresses: ['10.244.2.5', 'fd00:244:2::5'] },
        {
          name: 'outside',
          addresses: [
            ...['203.0.113.5', '203.0.113.200', '198.18.9.9', '10.1.2.3'],
            ...['2001:db8:ffff::5', '2001:db8:eeee::1'],
            // Service addresses, so that the world answers packets that the node leaves alone.
            ...['192.0.2.99', 'fd00:96::dead'],
          ],
        },
      ],
    });
    for (const name of ['A', 'B']) {
      await lab.host(name).serve(8080, 'tcp');
      await lab.host(name).serve(8080, 'udp');
    }
    await lab.host('outside').serve(80, 'udp');
    return new Scene(lab, new Host('node', namespace));
  }

  private constructor(lab: Lab, node: Host) {
    this.#lab = lab;
    this.#node = node;
  }

  host(name: 'pod' | 'A' | 'B' | 'remote' | 'outside'): Host {
    return this.#lab.host(name);
  }

  close(): void {
    this.#node.close();
    this.#lab.close();
  }

  /** Sends one question; `node` is a process on the node itself. */
  async once(who: string, story: Story): Promise<Outcome> {
    const { from, ...rest } = story;
    const question = from === undefined ? rest : { ...rest, source: from };
    return (who === 'node' ? this.#node : this.#lab.host(who)).ask(question);
  }

  /** Asks until every expected endpoint has answered; returns who answered. Fails when a question gets no answer. */
  async answers(who: string, story: Story): Promise<Answers> {
    const seen: Record<string, string> = {};
    for (let i = 0; i < draws; i++) {
      const outcome = await this.once(who, story);
      assert.equal(
        outcome.kind,
        'answered',
        `${who} → ${story.address}:${story.port} ${JSON.stringify(outcome)}`,
      );
      if (outcome.kind !== 'answered') break;
      const source = nodeAddresses.includes(outcome.source) ? 'MASQ' : outcome.source;
      assert.ok(
        seen[outcome.by] === undefined || seen[outcome.by] === source,
        `${outcome.by} saw two sources`,
      );
      seen[outcome.by] = source;
    }
    return seen;
  }

  /** The kind of outcome of one question. */
  async fate(who: string, story: Story): Promise<Outcome['kind']> {
    return (await this.once(who, story)).kind;
  }
}
