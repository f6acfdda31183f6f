import type { FastPathSettings } from '../../model/fast-path.ts';
import type { Family } from '../../model/ip.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import type { NodePortAddresses } from '../../model/node-port-addresses.ts';

/** What the ruleset of one family depends on besides services. Fixed while the program runs. */
export interface NftablesSettings {
  readonly family: Family;
  /** 0 to 31. */
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  readonly localDetector: LocalDetector;
  readonly nodePortAddresses: NodePortAddresses;
  /** This node's address in this family; empty when unknown. */
  readonly nodeIP: string;
  /** Feature gate KubeProxyNFTablesLocalhostNodePorts. */
  readonly localhostNodePorts: boolean;
  /** Undefined when every packet takes the usual way. */
  readonly fastPath?: FastPathSettings | undefined;
}
