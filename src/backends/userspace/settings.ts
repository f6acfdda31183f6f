import type { Choice } from '../../forwarder/balancer.ts';
import type { PortRange } from '../../forwarder/port-pool.ts';
import type { Family } from '../../model/ip.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import type { NodePortAddresses } from '../../model/node-port-addresses.ts';

/** What the mode depends on besides services, in one family. Fixed while the program runs. */
export interface UserspaceSettings {
  readonly family: Family;
  /** Where proxy sockets listen, and what captured packets are sent to. */
  readonly hostIP: string;
  /** This node's address; empty when unknown. */
  readonly nodeIP: string;
  readonly localDetector: LocalDetector;
  readonly nodePortAddresses: NodePortAddresses;
  /** Ports of proxy sockets; the system chooses when undefined. */
  readonly portRange: PortRange | undefined;
  readonly choice: Choice;
  /** Where the plan masquerades nobody, endpoints see the client's own address. */
  readonly keepsSource: boolean;
  /** Nobody's address is kept at cluster IPs. */
  readonly masqueradeAll: boolean;
}
