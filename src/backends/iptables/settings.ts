import type { Family } from '../../model/ip.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import type { NodePortAddresses } from '../../model/node-port-addresses.ts';

/** What the rules of one family depend on besides services. Fixed while the program runs. */
export interface IptablesSettings {
  readonly family: Family;
  /** 0 to 31. */
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  readonly localDetector: LocalDetector;
  readonly nodePortAddresses: NodePortAddresses;
  /** This node's address in this family. */
  readonly nodeIP: string;
  /** Node ports are served on loopback: wanted, possible in this family, and covered by the node port addresses. */
  readonly localhostNodePorts: boolean;
  /** conntrack passes packets outside the TCP window (`nf_conntrack_tcp_be_liberal`): INVALID is not dropped. */
  readonly conntrackLiberal: boolean;
  /** Milliseconds: in a large cluster, how long chains that nothing uses any more may linger. */
  readonly syncPeriod: number;
}
