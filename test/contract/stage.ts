import { after, afterEach, before, beforeEach } from 'node:test';
import { addressBooks } from './address-book.ts';
import { Cluster } from './cluster.ts';
import { Landscape } from './landscape.ts';
import { Scene } from './scene.ts';

/** What the tests of a suite act on. */
export interface Stage {
  readonly landscape: Landscape;
  readonly cluster: Cluster;
  /** The story of the test, as IPv4 sees it. */
  readonly scene: Scene;
  /** Both families' views of it. */
  readonly views: readonly Scene[];
}

/** Prepares a cluster with both families for a suite, and a story for each of its tests. Call it in `describe`. */
export function dualStackStage(mode: string, namespace: string): Stage {
  let landscape: Landscape;
  let cluster: Cluster;
  let scene: Scene;
  before(async () => {
    landscape = await Landscape.build(namespace);
    cluster = await Cluster.open(mode, ['IPv4', 'IPv6'], landscape);
  });
  beforeEach(() => {
    scene = new Scene(cluster, addressBooks.IPv4);
  });
  afterEach(async () => {
    scene.close();
    await cluster.stop();
  });
  after(async () => {
    await cluster.close();
    landscape.close();
  });
  return {
    get landscape() {
      return landscape;
    },
    get cluster() {
      return cluster;
    },
    get scene() {
      return scene;
    },
    get views() {
      return [scene, scene.otherFamily];
    },
  };
}
