import type { ClusterMode, WhichProxy } from '../arguments.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { Kubectl } from '../kubectl.ts';
import type { WebService } from '../load.ts';
import type { Machine } from '../machine.ts';
import type { Pki } from '../pki.ts';
import type { DeployedProxy } from '../proxy.ts';

/** The cluster that a scenario acts on. */
export interface Stage {
  readonly mode: ClusterMode;
  /** The proxy that is deployed before and after every scenario. */
  readonly which: WhichProxy;
  readonly kubectl: Kubectl;
  readonly controlPlane: ControlPlane;
  readonly machines: readonly Machine[];
  readonly proxy: DeployedProxy;
  readonly web: WebService;
  readonly pki: Pki;
}

/** Something that happens in a cluster while clients make connections. The proxy of the run is deployed before. */
export interface Scenario {
  /** A reason why it cannot be played in this mode or with this proxy. */
  readonly obstacle?: (stage: Stage) => string | undefined;
  /** Prepares the cluster, before there is load. */
  readonly prepare?: (stage: Stage) => Promise<void>;
  /** Happens under load. */
  readonly play: (stage: Stage) => Promise<void>;
  /** Returns the cluster to what it was, after the load. */
  readonly restore?: (stage: Stage) => Promise<void>;
}
