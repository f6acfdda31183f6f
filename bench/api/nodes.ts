import { execFileSync, spawnSync } from 'node:child_process';

/** Where programs on all nodes reach the API server. */
export const serverIP = '10.255.0.1';
const bridge = 'kpt-api';

export interface NodeNamespace {
  readonly name: string;
  readonly ip: string;
}

/** Network namespaces that stand for nodes, joined by a bridge in this namespace. */
export class Nodes implements Disposable {
  readonly all: readonly NodeNamespace[];

  constructor(count: number) {
    this.all = Array.from({ length: count }, (_, i) => ({
      name: `kpt-api-${process.pid}-${i}`,
      ip: `10.255.1.${i + 1}`,
    }));
    process.once('exit', this.#remove);
    ip('link', 'add', bridge, 'type', 'bridge');
    ip('addr', 'add', `${serverIP}/16`, 'dev', bridge);
    ip('link', 'set', bridge, 'up');
    for (const [i, node] of this.all.entries()) attach(node, `kpt-api${i}`);
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#remove);
    this.#remove();
  }

  readonly #remove = (): void => {
    for (const { name } of this.all) spawnSync('ip', ['netns', 'delete', name]);
    spawnSync('ip', ['link', 'delete', bridge]);
  };
}

function attach({ name, ip: address }: NodeNamespace, link: string): void {
  ip('netns', 'add', name);
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  ip('link', 'set', link, 'master', bridge, 'up');
  for (const args of [
    ['link', 'set', 'lo', 'up'],
    ['addr', 'add', `${address}/16`, 'dev', 'eth0'],
    ['link', 'set', 'eth0', 'up'],
    ['route', 'add', 'default', 'via', serverIP],
  ]) {
    ip('-n', name, ...args);
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' });
}
