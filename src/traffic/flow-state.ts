import type { FlowState } from '../inspect/traffic-api.ts';
import { TCP } from '../kernel/ct/constants.ts';
import { IPS_ASSURED, IPS_SEEN_REPLY, type TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import { protocolNumbers } from '../kernel/numbers.ts';

/** TCP_CONNTRACK_* by number. */
const tcpStates: readonly FlowState[] = [
  'UNKNOWN',
  'SYN_SENT',
  'SYN_RECV',
  'ESTABLISHED',
  'FIN_WAIT',
  'CLOSE_WAIT',
  'LAST_ACK',
  'TIME_WAIT',
  'CLOSE',
  'SYN_SENT',
];

export function stateOf({ protocol, tcpState, status }: TrackedFlow): FlowState {
  if (protocol === protocolNumbers.TCP) return tcpStates[tcpState] ?? 'UNKNOWN';
  return status & IPS_SEEN_REPLY ? 'REPLIED' : 'UNREPLIED';
}

/** The kernel remembers a closed TCP connection for some time. */
export function isOpen({ protocol, tcpState }: TrackedFlow): boolean {
  return protocol !== protocolNumbers.TCP || tcpState < TCP.LAST_ACK || tcpState > TCP.CLOSE;
}

/** Whether nothing more can be sent, so that its figures are final. */
export function isClosed({ protocol, tcpState }: TrackedFlow): boolean {
  return protocol === protocolNumbers.TCP && (tcpState === TCP.TIME_WAIT || tcpState === TCP.CLOSE);
}

/**
 * The endpoint refused the connection, or reset it before it was established. The kernel forgets a connection at once
 * whose only answer is a reset, before it notes that there was an answer.
 */
export function isReset({ protocol, tcpState, status, isCounted, packetsBack }: TrackedFlow): boolean {
  if (protocol !== protocolNumbers.TCP || tcpState !== TCP.CLOSE || status & IPS_ASSURED) return false;
  return (status & IPS_SEEN_REPLY) !== 0 || !isCounted || packetsBack > 0;
}

/** Meaningful at the end of a flow. */
export function isUnanswered(flow: TrackedFlow): boolean {
  return !(flow.status & IPS_SEEN_REPLY) && !isReset(flow);
}
